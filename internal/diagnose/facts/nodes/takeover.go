package nodes

import (
	"net"
	"strconv"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// Takeover is a master that fell silent, and who has its slots since. Its times are in nanoseconds since the Unix
// epoch; those of the server source are a second late at most.
type Takeover struct {
	// DownNs is when the old master last answered; 0 for before the watch.
	DownNs int64
	// TakenNs is when its slots had a new master; 0 for before the watch, or not yet.
	TakenNs int64
	// NewMaster is the new master, where it is watched.
	NewMaster *facts.Node
	// Pending says that nobody had taken over when the watch ended.
	Pending bool
	// Slots is the number of its slots; 0 where there is no cluster, or it is unknown.
	Slots int
	// BackNs is when the old master answers again; 0 where it does not during the watch.
	BackNs int64
	// ConnsRefused says that its host refused connections: the process was gone.
	ConnsRefused bool
	// StoppedNs is for how long its process was stopped while it was silent, in nanoseconds.
	StoppedNs int64
}

// TakeoverOf is that of this node, an old master; ok is false where it kept its slots, or handed them over while it
// answered.
func TakeoverOf(n *facts.Node) (t Takeover, ok bool) {
	switch t.NewMaster, t.TakenNs = successor(n); {
	case t.NewMaster != nil:
		t.DownNs = lastAnswer(n, t.TakenNs)
		if t.TakenNs-t.DownNs < answersEvery(n) {
			return t, false // it answered until then: the slots were handed over (CLUSTER FAILOVER)
		}
	case replacedBeforeWatch(n):
		t.DownNs = lastAnswer(n, n.EndNs)
	case failedWithoutSuccessor(n):
		t.DownNs, t.Pending = lastAnswer(n, n.EndNs), true
	default:
		return t, false
	}
	t.Slots = SlotsBefore(n)
	t.BackNs = firstAnswer(n, max(t.DownNs, t.TakenNs))
	t.ConnsRefused = RefusedSince(n, t.DownNs) > 0
	t.StoppedNs = stoppedSince(n, t.DownNs)
	return t, true
}

// TakeoverOfUnwatchedMaster is what a replica reports of a master that is not watched itself, because it could not be
// reached when the watch began: the replica's link to it is down, and it became the master itself, or nobody has.
func TakeoverOfUnwatchedMaster(n *facts.Node) (t Takeover, master string, ok bool) {
	down := n.Series(series.MasterLinkDownSinceSeconds)
	if len(down) == 0 {
		return t, "", false
	}
	old, found := masterBefore(n, n.EndNs)
	if !found || watched(n.Case, old) {
		return t, "", false
	}
	t.Slots, t.Pending = old.Slots(), true
	t.DownNs = max(down[0].TimeNs-int64(down[0].Value*1e9), n.StartNs)
	for _, e := range n.Events(recording.SourceServer, recording.KindRoleChange) {
		if roleOf(e).To == "master" {
			t.NewMaster, t.TakenNs, t.Pending = n, e.TimeNs, false
		}
	}
	if t.Pending && down[len(down)-1].TimeNs < lastAnswer(n, n.EndNs)-2*facts.PollIntervalNs {
		return t, "", false // its link to the master is up again
	}
	return t, old.Addr(), t.Slots > 0
}

// roleChange is the detail of a role-change event.
type roleChange struct {
	From string
	To   string
}

func roleOf(e recording.Event) roleChange { return recording.DetailOf[roleChange](e) }

// FromNs is when the old master fell silent, or the begin of the watch.
func (t Takeover) FromNs(c *facts.Case) int64 { return max(t.DownNs, c.StartNs) }

// EndNs is when the slots of the old master had a new one, or the end of the watch.
func (t Takeover) EndNs(c *facts.Case) int64 {
	if t.TakenNs == 0 {
		return lastAnswerOfAny(c)
	}
	return t.TakenNs
}

// successor is the watched node that was this one's replica and then a master, and when it was seen to be.
func successor(n *facts.Node) (*facts.Node, int64) {
	for _, r := range n.Nodes {
		for _, e := range r.Events(recording.SourceServer, recording.KindRoleChange) {
			if d := roleOf(e); r != n && d.To == "master" && d.From != "master" && followed(r, n, e.TimeNs) {
				return r, e.TimeNs
			}
		}
	}
	return nil, 0
}

// followed reports whether this node was a replica of another before a time.
func followed(n *facts.Node, master *facts.Node, before int64) bool {
	if of, ok := masterBefore(n, before); ok && isNode(master, of) {
		return true
	}
	for _, text := range n.InfoTexts { // a replica without cluster names its master in INFO
		if text.TimeNs >= before || text.MasterHost == "" {
			continue
		}
		port, ok := n.Series(series.MasterPort).At(text.TimeNs)
		if ok && net.JoinHostPort(text.MasterHost, strconv.Itoa(int(port))) == master.Address {
			return true
		}
	}
	return false
}

// replacedBeforeWatch reports whether the others hold this node for failed and another has its slots: that happened
// before the watch.
func replacedBeforeWatch(n *facts.Node) bool {
	line, at := lastSeen(n)
	return at > 0 && line.Failed() && line.Primary && len(line.Ranges) == 0 && lastAnswer(n, n.EndNs) == 0
}

// failedWithoutSuccessor reports whether this node had slots and fell silent for good, and others noticed, but nobody
// took over. A process that is stopped is not meant: as soon as it goes on it is the master again.
func failedWithoutSuccessor(n *facts.Node) bool {
	last := lastAnswer(n, n.EndNs)
	if last == 0 || lastAnswerOfAny(n.Case)-last < answersEvery(n) || stoppedSince(n, last) > 0 {
		return false
	}
	if replicas, _ := n.Series(series.ConnectedSlaves).Max(); len(ClusterViews(n)) == 0 && replicas > 0 {
		// without cluster, Sentinel or an operator promotes another node, which may not be watched
		return RefusedSince(n, last) > 0
	}
	if SlotsBefore(n) == 0 {
		return false
	}
	for _, other := range n.Nodes {
		for _, field := range []series.Name{series.ClusterSlotsPfail, series.ClusterSlotsFail} {
			if most, ok := other.Series(field).Max(); ok && other != n && int(most) >= SlotsBefore(n) {
				return true
			}
		}
	}
	return false
}
