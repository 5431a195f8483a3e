package facts

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"

	"slowpath/internal/recording"
)

// LostIn is the time that callers lost in a stretch: all of it on each connection that they had in use when it began. A
// call that is tried again at once has no place where it waits, but nor has its caller what it asked for.
func (n *Node) BlockedNs(w Span) (ns int64) {
	for _, c := range n.ClientCallers() {
		used := 0
		for _, k := range c.Conns {
			if k.AppCalls() > 0 && k.OpenNs < w.FromNs && (k.CloseNs == 0 || k.CloseNs >= w.FromNs) {
				used++
			}
		}
		ns += int64(used) * (w.ToNs - w.FromNs)
	}
	s := SilentNodeWaits{Callers: NameCounts{}}
	n.addUnread(w, &s)
	return max(ns, s.Ns)
}

// NodeTimeoutMs is cluster-node-timeout of any node that tells it, in milliseconds; 0 where there is no cluster.
func (n *Node) NodeTimeoutMs() int {
	if len(n.ClusterViews) == 0 && n.SlotsBefore() == 0 {
		return 0
	}
	for _, one := range append([]*Node{n}, n.Nodes...) {
		if ms := one.ConfigInt("cluster-node-timeout"); ms > 0 {
			return ms
		}
	}
	return 0
}

// settledIn is how long after a takeover was seen callers may still be on their way: the others hear of it within
// milliseconds, the server source sees it within its second, and a call that waits then may do so for another.
const settleNs = int64(2e9)

// StuckAfter is who still waits for an old master when others have its slots, and had the time to tell.
func (n *Node) WaitsAfterTakeover(t Takeover) SilentNodeWaits {
	if t.Pending {
		return SilentNodeWaits{}
	}
	w := Span{t.TakenNs + settleNs, t.BackNs}
	if t.TakenNs == 0 { // so it was before the watch
		w.FromNs = n.StartNs
	}
	if t.BackNs == 0 {
		w.ToNs = n.EndNs
	}
	s := SilentNodeWaits{Callers: NameCounts{}}
	n.addUnread(w, &s)
	n.addConns(w, &s)
	return s
}

// Stuck is who waits for a silent node in a stretch of time.
type SilentNodeWaits struct {
	Ns             int64      // of waiting, each connection for itself
	Callers        NameCounts // connections by caller
	RequestsUnread bool       // their requests were seen to lie unread
	Dialled        int        // connections that were made to it in that time
	GivenUp        int        // and were closed by their client, or without an answer
	LongestNs      int64      // of those waits
	Lasting        bool       // some waited to the end
}

// stuckUnread adds those whose requests lie in the server's sockets.
func (n *Node) addUnread(w Span, s *SilentNodeWaits) {
	var before []recording.Unread
	servers, own, at := n.servers(), n.ownPIDs(), w.FromNs
	count := func(to int64) {
		for _, u := range before {
			if servers[u.PID] || own[u.PID] || IsServerProcess(u.Comm) || to <= at {
				continue
			}
			name := u.Host
			if u.PID != 0 {
				name = fmt.Sprintf("%s[%d]", u.Comm, u.PID)
			}
			s.RequestsUnread = true
			s.Ns += int64(u.Connections) * (to - at)
			s.LongestNs = max(s.LongestNs, to-at)
			s.Lasting = s.Lasting || to == w.ToNs
			s.Callers[name] = max(s.Callers[name], u.Connections)
		}
		at = max(at, to)
	}
	for _, snap := range n.Rec.Snapshots {
		if snap.Source != recording.SourceHost || snap.Subject != n.Address || snap.Name != recording.SnapshotUnread {
			continue
		}
		count(min(snap.TimeNs, w.ToNs))
		before = nil
		_ = json.Unmarshal([]byte(snap.Body), &before) // a damaged snapshot is as good as none
	}
	count(w.ToNs)
}

// stuckConns adds those whose connections the kernel source saw: made after the takeover and never answered, or given
// up while a call waited.
func (n *Node) addConns(w Span, s *SilentNodeWaits) {
	for _, c := range n.ClientCallers() {
		for _, k := range c.Conns {
			end := k.CloseNs
			if end == 0 || end > w.ToNs {
				end = w.ToNs
			}
			switch {
			case k.OpenNs >= w.FromNs && k.OpenNs < w.ToNs && k.Calls == 0:
				s.Dialled++
				s.addWait(c, k.OpenNs, end)
				s.Lasting = s.Lasting || end == w.ToNs
			case k.CloseNs > w.FromNs && k.ClosedWaiting() && k.CloseNs-k.IdleNs >= w.FromNs-settleNs:
				s.addWait(c, max(w.FromNs, k.CloseNs-k.IdleNs), end)
			default:
				continue
			}
			if k.CloseNs > 0 && k.ClosedBy == recording.Client {
				s.GivenUp++
			}
		}
	}
	for _, one := range n.UnansweredRequests() {
		if one.Retransmits >= UnansweredRetransmits && one.ToNs > w.FromNs && one.SentNs >= w.FromNs-settleNs {
			s.Ns += one.ToNs - max(one.SentNs, w.FromNs)
			s.LongestNs = max(s.LongestNs, one.ToNs-one.SentNs)
			s.Callers[one.Caller]++
		}
	}
}

func (s *SilentNodeWaits) addWait(c *Caller, from, to int64) {
	if to <= from {
		return
	}
	s.Ns += to - from
	s.LongestNs = max(s.LongestNs, to-from)
	s.Callers[c.Name]++
}

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

// Users are the callers of a node that are no nodes themselves.
func (n *Node) ClientCallers() []*Caller {
	servers := n.servers()
	return slices.DeleteFunc(n.Callers(), func(c *Caller) bool { return servers[c.PID] || IsServerProcess(c.Comm) })
}
