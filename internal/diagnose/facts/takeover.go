package facts

import (
	"net"
	"strconv"

	"slowpath/internal/recording"
)

// Takeover is a master that fell silent, and who has its slots since. Times in nanoseconds; those of the server source
// are a second late at most.
type Takeover struct {
	DownNs       int64 // the last sign of life of the old master; 0: before the watch
	TakenNs      int64 // its slots had a new master; 0: before the watch, or not yet
	NewMaster    *Node // the new master, where it is watched
	Pending      bool  // nobody had taken over when the watch ended
	Slots        int   // 0: no cluster, or unknown
	BackNs       int64 // the old master answers again; 0: not in the watch
	ConnsRefused bool  // its host refused connections: the process was gone
	StoppedNs    int64 // of the silence its process was stopped
}

// Takeover tells of this node, an old master; ok is false where it kept its slots, or handed them over while it
// answered.
func (n *Node) Takeover() (t Takeover, ok bool) {
	switch t.NewMaster, t.TakenNs = n.successor(); {
	case t.NewMaster != nil:
		t.DownNs = n.lastAnswer(t.TakenNs)
		if t.TakenNs-t.DownNs < n.answersEvery() {
			return t, false // it answered until then: a handover (CLUSTER FAILOVER)
		}
	case n.replacedBeforeWatch():
		t.DownNs = n.lastAnswer(n.EndNs)
	case n.failedWithoutSuccessor():
		t.DownNs, t.Pending = n.lastAnswer(n.EndNs), true
	default:
		return t, false
	}
	t.Slots = n.SlotsBefore()
	t.BackNs = n.firstAnswer(max(t.DownNs, t.TakenNs))
	t.ConnsRefused = n.RefusedSince(t.DownNs) > 0
	t.StoppedNs = n.stoppedSince(t.DownNs)
	return t, true
}

// Orphan is what a replica tells of a master that is not watched itself, because it could not be reached when the watch
// began: its link to it is down, and it became the master itself, or nobody has.
func (n *Node) TakeoverOfUnwatchedMaster() (t Takeover, master string, ok bool) {
	down := n.Info("master_link_down_since_seconds")
	if len(down) == 0 {
		return t, "", false
	}
	old, found := n.masterBefore(n.EndNs)
	if !found || n.watched(old) {
		return t, "", false
	}
	t.Slots, t.Pending = old.Slots(), true
	t.DownNs = max(down[0].TimeNs-int64(down[0].Value*1e9), n.StartNs)
	for _, e := range n.Events(recording.SourceServer, recording.KindRoleChange) {
		if roleOf(e).To == "master" {
			t.NewMaster, t.TakenNs, t.Pending = n, e.TimeNs, false
		}
	}
	if t.Pending && down[len(down)-1].TimeNs < n.lastAnswer(n.EndNs)-2*PollIntervalNs {
		return t, "", false // it has its master back
	}
	return t, old.Addr(), t.Slots > 0
}

// roleChange is the detail of a role-change event.
type roleChange struct{ From, To string }

func roleOf(e recording.Event) roleChange { return recording.DetailOf[roleChange](e) }

// FromNs is when the old master fell silent, or the begin of the watch.
func (t Takeover) FromNs(c *Case) int64 { return max(t.DownNs, c.StartNs) }

// EndNs is when the slots of the old master had a new one, or the end of the watch.
func (t Takeover) EndNs(c *Case) int64 {
	if t.TakenNs == 0 {
		return c.lastAnswerOfAny()
	}
	return t.TakenNs
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
	for _, text := range n.InfoTexts { // a replica without cluster names its master in INFO
		if text.TimeNs >= before || text.MasterHost == "" {
			continue
		}
		port, ok := n.Info("master_port").At(text.TimeNs)
		if ok && net.JoinHostPort(text.MasterHost, strconv.Itoa(int(port))) == master.Address {
			return true
		}
	}
	return false
}

// deposed reports that the others hold this node for failed, and its slots are another's: so it was before the watch.
func (n *Node) replacedBeforeWatch() bool {
	line, at := n.lastSeen()
	return at > 0 && line.Failed() && line.Primary && len(line.Ranges) == 0 && n.lastAnswer(n.EndNs) == 0
}

// missed reports that this node had slots, fell silent for good, and others noticed, but nobody took over. A process
// that is stopped is no case of it: as soon as it goes on it is the master again.
func (n *Node) failedWithoutSuccessor() bool {
	last := n.lastAnswer(n.EndNs)
	if last == 0 || n.lastAnswerOfAny()-last < n.answersEvery() || n.stoppedSince(last) > 0 {
		return false
	}
	if replicas, _ := n.Info("connected_slaves").Max(); len(n.ClusterViews) == 0 && replicas > 0 {
		// no cluster: a Sentinel or a person has to name another, which may not be watched
		return n.RefusedSince(last) > 0
	}
	if n.SlotsBefore() == 0 {
		return false
	}
	for _, other := range n.Nodes {
		for _, field := range []string{"cluster_slots_pfail", "cluster_slots_fail"} {
			if most, ok := other.Info(field).Max(); ok && other != n && int(most) >= n.SlotsBefore() {
				return true
			}
		}
	}
	return false
}
