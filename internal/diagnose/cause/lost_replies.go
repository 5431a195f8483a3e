package cause

import (
	"fmt"
	"slices"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
)

// lostReplies are replies that the kernel source saw the server send, and arrive no earlier than a retransmission timer
// after that. Neither process has a part in it. What a firewall or a queue drops at the server's own host counts there
// as no retransmission, as it was never sent (net/ipv4/tcp_output.c, tcp_write_xmit), and the caller's end repeats a
// request that had arrived: only the time tells.
type lostReplies struct {
	Late    int   // on their way for RTO_MIN or longer
	Resent  int   // of these, what arrived right after one end had sent again what the other had not acknowledged
	Short   int   // replies that were late by less, as a path or a host that holds packets up makes them
	Moments int   // apart from each other, at which those of Resent arrived
	MaxNs   int64 // longest of Late
}

// proven: most replies that were late came when a timer had run out, at different times, and hardly any came earlier. A
// host that stands still has its timers run out as well when it goes on, but for all connections at once.
func (r lostReplies) proven() bool {
	return r.Moments >= lostMoments && 2*r.Resent >= r.Late && r.Late > r.Short
}

// lostMoments is how often a timer must have brought a reply: a machine that was suspended once or twice looks the same
// that often.
const lostMoments = 3

// onItsWay reports whether a segment is that of a reply which was lost, by its length.
func onItsWay(s account.Segment) bool {
	return s.Actor == account.Network && s.State == account.Back && s.Ns() >= rtoMinNs*9/10
}

func (n *Node) lostReplies() (r lostReplies) {
	resends := map[string][]int64{} // when they were sent again
	for _, e := range n.Events(recording.SourceTap, recording.KindRetransmit) {
		if d := recording.DetailOf[recording.RetransmitDetail](e); d.State == "established" &&
			e.DurationNs >= rtoMinNs*9/10 {
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
			case onItsWay(s):
				r.Late++
				r.MaxNs = max(r.MaxNs, s.Ns())
				if slices.ContainsFunc(resends[a.Call.Conn], func(at int64) bool {
					return at >= s.FromNs &&
						at <= s.ToNs && s.ToNs-at < n.Ledger.ThresholdNs
				}) {
					r.Resent++
					moments = append(moments, s.ToNs)
				}
			case s.Actor == account.Network && s.State == account.Back && s.Ns() >= n.Ledger.ThresholdNs:
				r.Short++
			}
		}
	}
	slices.Sort(moments)
	last := int64(0)
	for _, at := range moments {
		if r.Moments == 0 || at-last >= rtoMinNs/2 {
			r.Moments, last = r.Moments+1, at
		}
	}
	return r
}

func (f *Finding) supportReplies(r lostReplies) {
	f.support(recording.SourceTap, fmt.Sprintf("%d replies arrived %s or later after the server had sent them, up to "+
		"%s; %d of them right after one end had sent again what was not acknowledged: they were lost on their way to "+
		"the caller",
		r.Late, dur(rtoMinNs*9/10), dur(r.MaxNs), r.Resent), float64(r.Late), "replies")
}
