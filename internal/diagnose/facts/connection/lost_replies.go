package connection

import (
	"slices"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/recording"
)

// LostReplies are replies that the tap saw the server send, and arrive no earlier than a retransmission timer
// after that. Neither process has a part in it. What a firewall or a queue drops at the server's own host counts there
// as no retransmission, as it was never sent (net/ipv4/tcp_output.c, tcp_write_xmit), and the caller's end repeats a
// request that had arrived: only the time shows it.
type LostReplies struct {
	// Late is the number of replies that were on the path for RTO_MIN or longer.
	Late int
	// Retransmitted is the number of Late that arrived right after one end had retransmitted what the other had not
	// acknowledged.
	Retransmitted int
	// LateByLess is the number of replies that were late by less, as a path or a host that holds packets up makes them.
	LateByLess int
	// Instants is the number of separate times at which those of Retransmitted arrived.
	Instants int
	// MaxNs is the longest of Late in nanoseconds.
	MaxNs int64
}

// Proven reports whether most late replies came when a timer had run out, at different times, and hardly any came
// earlier. A host that stands still has its timers run out as well when it goes on, but for all connections at once,
// and seldom.
func (r LostReplies) Proven() bool {
	return r.Instants >= degree.Several && 2*r.Retransmitted >= r.Late && r.Late > r.LateByLess
}

// IsLostReply reports whether a segment is that of a lost reply, by its length.
func IsLostReply(s account.Segment) bool {
	return s.Actor == account.Network && s.State == account.Back && s.Ns() >= hosts.MinTimeoutNs
}

// LostRepliesOf are those among the slow calls to this node.
func LostRepliesOf(n *facts.Node) (r LostReplies) {
	resends := map[string][]int64{} // when they were retransmitted
	for _, e := range n.Events(recording.SourceTap, recording.KindRetransmit) {
		if d := recording.DetailOf[recording.RetransmitDetail](e); d.State == "established" &&
			e.DurationNs >= hosts.MinTimeoutNs {
			resends[d.Client] = append(resends[d.Client], e.TimeNs+e.DurationNs)
		}
	}
	var moments []int64
	for _, a := range n.Ledger.Slow {
		if a.Call.Node != n.Address || a.Call.Source != recording.SourceTap {
			continue
		}
		for _, s := range a.Segments {
			switch {
			case IsLostReply(s):
				r.Late++
				r.MaxNs = max(r.MaxNs, s.Ns())
				if slices.ContainsFunc(resends[a.Call.Conn], func(at int64) bool {
					return at >= s.FromNs && at <= s.ToNs && s.ToNs-at < n.Ledger.ThresholdNs
				}) {
					r.Retransmitted++
					moments = append(moments, s.ToNs)
				}
			case s.Actor == account.Network && s.State == account.Back && s.Ns() >= n.Ledger.ThresholdNs:
				r.LateByLess++
			}
		}
	}
	slices.Sort(moments)
	last := int64(0)
	for _, at := range moments {
		if r.Instants == 0 || at-last >= hosts.RTOMinNs/2 {
			r.Instants, last = r.Instants+1, at
		}
	}
	return r
}
