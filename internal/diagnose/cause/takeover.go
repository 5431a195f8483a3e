package cause

import (
	"net"
	"slices"
	"strconv"

	"slowpath/internal/recording"
)

// takeover is a master that fell silent, and who has its slots since. Times in nanoseconds; those of the server source
// are a second late at most.
type takeover struct {
	downNs  int64 // the last sign of life of the old master; 0: before the watch
	takenNs int64 // its slots had a new master; 0: before the watch, or not yet
	by      *Node // the new master, where it is watched
	open    bool  // nobody had taken over when the watch ended
	slots   int   // 0: no cluster, or unknown
	backNs  int64 // the old master answers again; 0: not in the watch
	refused bool  // its host refused connections: the process was gone
	stopped int64 // of the silence its process was stopped
}

// takeover tells of this node, an old master; ok is false where it kept its slots, or handed them over while it
// answered.
func (n *Node) takeover() (t takeover, ok bool) {
	switch t.by, t.takenNs = n.successor(); {
	case t.by != nil:
		t.downNs = n.lastAnswer(t.takenNs)
		if t.takenNs-t.downNs < n.answersEvery() {
			return t, false // it answered until then: a handover (CLUSTER FAILOVER)
		}
	case n.deposed():
		t.downNs = n.lastAnswer(n.EndNs)
	case n.missed():
		t.downNs, t.open = n.lastAnswer(n.EndNs), true
	default:
		return t, false
	}
	t.slots = n.slotsBefore()
	t.backNs = n.firstAnswer(max(t.downNs, t.takenNs))
	t.refused = n.turnedAway(t.downNs) > 0
	t.stopped = n.stoppedSince(t.downNs)
	return t, true
}

// orphan is what a replica tells of a master that is not watched itself, because it could not be reached when the watch
// began: its link to it is down, and it became the master itself, or nobody has.
func (n *Node) orphan() (t takeover, master string, ok bool) {
	down := n.Info("master_link_down_since_seconds")
	if len(down) == 0 {
		return t, "", false
	}
	old, found := n.masterBefore(n.EndNs)
	if !found || n.watched(old) {
		return t, "", false
	}
	t.slots, t.open = old.Slots(), true
	t.downNs = max(down[0].TimeNs-int64(down[0].Value*1e9), n.StartNs)
	for _, e := range n.Events(recording.SourceServer, recording.KindRoleChange) {
		if roleOf(e).To == "master" {
			t.by, t.takenNs, t.open = n, e.TimeNs, false
		}
	}
	if t.open && down[len(down)-1].TimeNs < n.lastAnswer(n.EndNs)-2*pollEvery {
		return t, "", false // it has its master back
	}
	return t, old.Addr(), t.slots > 0
}

// roleChange is the detail of a role-change event.
type roleChange struct{ From, To string }

func roleOf(e recording.Event) roleChange { return recording.DetailOf[roleChange](e) }

// fromNs is when the old master fell silent, or the begin of the watch.
func (t takeover) fromNs(c *Case) int64 { return max(t.downNs, c.StartNs) }

// endNs is when the slots of the old master had a new one, or the end of the watch.
func (t takeover) endNs(c *Case) int64 {
	if t.takenNs == 0 {
		return c.lastHeard()
	}
	return t.takenNs
}

// successor is the watched node that was this one's replica and then its master, and when it was seen to be.
func (n *Node) successor() (*Node, int64) {
	for _, r := range n.Nodes {
		for _, e := range r.Events(recording.SourceServer, recording.KindRoleChange) {
			if d := roleOf(e); r != n && d.To == "master" && d.From != "master" && r.followed(n, e.TimeNs) {
				return r, e.TimeNs
			}
		}
	}
	return nil, 0
}

// followed reports whether this node was a replica of another before a time.
func (n *Node) followed(master *Node, before int64) bool {
	if of, ok := n.masterBefore(before); ok && master.isNode(of) {
		return true
	}
	for _, s := range n.Rec.Snapshots { // a replica without cluster names its master in INFO
		if s.Source != recording.SourceServer || s.Subject != n.Address || s.Name != "info" || s.TimeNs >= before {
			continue
		}
		port, ok := n.Info("master_port").At(s.TimeNs)
		if host := stringField(s.Body, "master_host"); ok && host != "" && net.JoinHostPort(host,
			strconv.Itoa(int(port))) == master.Address {
			return true
		}
	}
	return false
}

// deposed reports that the others hold this node for failed, and its slots are another's: so it was before the watch.
func (n *Node) deposed() bool {
	line, at := n.lastSeen()
	return at > 0 && line.Failed() && line.Primary && len(line.Ranges) == 0 && n.lastAnswer(n.EndNs) == 0
}

// missed reports that this node had slots, fell silent for good, and others noticed, but nobody took over. A process
// that is stopped is no case of it: as soon as it goes on it is the master again.
func (n *Node) missed() bool {
	last := n.lastAnswer(n.EndNs)
	if last == 0 || n.lastHeard()-last < n.answersEvery() || n.stoppedSince(last) > 0 {
		return false
	}
	if replicas, _ := n.Info("connected_slaves").Max(); len(n.views) == 0 && replicas > 0 {
		// no cluster: a Sentinel or a person has to name another, which may not be watched
		return n.turnedAway(last) > 0
	}
	if n.slotsBefore() == 0 {
		return false
	}
	for _, other := range n.Nodes {
		for _, field := range []string{"cluster_slots_pfail", "cluster_slots_fail"} {
			if most, ok := other.Info(field).Max(); ok && other != n && int(most) >= n.slotsBefore() {
				return true
			}
		}
	}
	return false
}

// servers are the processes of all watched servers: nodes that call each other.
func (c *Case) servers() map[int]bool {
	out := map[int]bool{}
	for _, n := range c.Nodes {
		if pid, ok := n.Info("process_id").Last(); ok {
			out[int(pid)] = true
		}
	}
	return out
}

// users are the callers of a node that are no nodes themselves.
func (n *Node) users() []*Caller {
	servers := n.servers()
	return slices.DeleteFunc(n.callers(), func(c *Caller) bool { return servers[c.PID] || isServer(c.Comm) })
}
