package connection

import (
	"slices"
	"sort"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/recording"
)

// UnansweredRetransmits is the number of retransmissions from which a request has no answer: a lost segment is
// retransmitted once; two in a row without an answer are a path that is gone. The timer doubles: 200, 400, 800 ms.
// Bound: statistics, where 1 % of the segments are lost, two in a row are 0.01 %.
const UnansweredRetransmits = 2

// UnansweredRequest is a request that had no answer.
type UnansweredRequest struct {
	// Client is the address of the client's end.
	Client string
	// Caller is the name of the caller.
	Caller string
	// SentNs is when it was sent, in nanoseconds since the Unix epoch.
	SentNs int64
	// ToNs is when its caller gave up, or the last that was seen of it.
	ToNs int64
	// Retransmits is how often it was retransmitted.
	Retransmits int
	// IdleBeforeNs is how long the connection had been idle, in nanoseconds.
	IdleBeforeNs int64
	// ClosedByClient says that its caller closed the connection.
	ClosedByClient bool
}

// UnansweredRequests are those of clients on this host that were retransmitted and never answered.
func UnansweredRequests(n *facts.Node) []UnansweredRequest {
	return slices.Clone(facts.Once(n, "unanswered requests", findUnansweredRequests))
}

func findUnansweredRequests(n *facts.Node) []UnansweredRequest {
	byConn := map[string]*UnansweredRequest{}
	for _, e := range n.Events(recording.SourceTap, recording.KindRetransmit) { // in order of time
		d := recording.DetailOf[recording.RetransmitDetail](e)
		if d.From != recording.Client || d.State != "established" {
			continue
		}
		s := byConn[d.Client]
		// what is retransmitted now was sent after the last time: an answer came between
		if s == nil || e.TimeNs > s.ToNs {
			s = &UnansweredRequest{Client: d.Client, SentNs: e.TimeNs}
			byConn[d.Client] = s
		}
		s.Retransmits++
		s.ToNs = e.TimeNs + e.DurationNs
	}
	if len(byConn) == 0 {
		return nil
	}
	for _, c := range n.Rec.Calls {
		if s := byConn[c.Conn]; s != nil && c.Source == recording.SourceTap && c.EndNs > s.ToNs {
			delete(byConn, c.Conn) // it was answered in the end
		}
	}
	for e := range n.Rec.Conns(n.Address, recording.KindClose) {
		if s := byConn[e.Client]; s != nil && e.Side == recording.Client && e.Waiting > 0 {
			s.ToNs, s.ClosedByClient = e.TimeNs, true
		}
	}
	var out []UnansweredRequest
	for _, l := range caller.Timelines(n) {
		s := byConn[l.Client]
		if s == nil || l.OpenNs > s.SentNs || l.CloseNs > 0 && l.CloseNs < s.SentNs {
			continue
		}
		s.Caller, s.IdleBeforeNs = l.Caller, l.IdleBefore(s.SentNs)
		out = append(out, *s)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].SentNs < out[j].SentNs })
	return out
}
