package nodes

import (
	"slices"
	"sort"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/recording"
)

// Outage is a stretch of time in which a node answered nobody, and attempts to reach it failed.
type Outage struct {
	facts.Span // from the last answer before it to the first one after it, within the watch
	// Kind is how most attempts failed.
	Kind Failure
	// Attempts is how many attempts to connect failed: slowpath's own, and those of clients that the tap saw.
	Attempts int
	// Over says that the node answered again before the watch ended.
	Over bool
}

// minSilenceNs is from when a node that answers nobody until the watch ends counts as gone, where no attempt failed by
// then: the shortest timeout of a reply that a widely used library has by default (Jedis: 2 s).
// Bound: library, the default timeout of Jedis, 2 s.
const minSilenceNs = int64(2e9)

// Outages are those of the node, in order of time. A connection that broke while others were answered is none.
func Outages(n *facts.Node) []Outage { return facts.Once(n, "outages", findOutages) }

func findOutages(n *facts.Node) (out []Outage) {
	answers := answerTimes(n)
	kinds := map[facts.Span]map[Failure]int{}
	for _, f := range failedAttempts(n) {
		s := between(answers, f.atNs, facts.Span{FromNs: n.StartNs, ToNs: n.EndNs})
		if kinds[s] == nil {
			kinds[s] = map[Failure]int{}
		}
		kinds[s][f.kind]++
	}
	if s, waiting := silenceAtEnd(n, answers); len(waiting) > 0 && len(kinds[s]) == 0 {
		kinds[s] = waiting
	}
	for s, by := range kinds {
		// A port that refuses, and is not seen to answer again, needs no time to prove it.
		sure := by[FailedRefused] > 0 && s.ToNs == n.EndNs
		if s.ToNs-s.FromNs < answersEvery(n) && !sure || answeredUsers(n, s) {
			continue
		}
		o := Outage{Span: s, Over: s.ToNs < n.EndNs}
		most := -1
		for _, kind := range []Failure{FailedRefused, FailedUnreachable, FailedClosed, FailedNoReply} {
			count, seen := by[kind]
			if o.Attempts += count; seen && count > most {
				o.Kind, most = kind, count
			}
		}
		out = append(out, o)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].FromNs < out[j].FromNs })
	return out
}

// between is the time around another from the last answer before it to the first after it, within a stretch.
func between(answers []int64, atNs int64, within facts.Span) facts.Span {
	i := sort.Search(len(answers), func(i int) bool { return answers[i] > atNs })
	s := within
	if i > 0 {
		s.FromNs = max(s.FromNs, answers[i-1])
	}
	if i < len(answers) {
		s.ToNs = min(s.ToNs, answers[i])
	}
	return s
}

// failedAttempt is an attempt to connect that failed.
type failedAttempt struct {
	atNs int64
	kind Failure
}

// failedAttempts are those of slowpath's sources and of the clients that the tap saw.
func failedAttempts(n *facts.Node) (out []failedAttempt) {
	for _, source := range []string{recording.SourceProbe, recording.SourceServer} {
		for _, e := range n.Events(source, recording.KindError) {
			d := recording.DetailOf[recording.ErrorDetail](e)
			if d.Phase == "command" || d.Code != "" {
				continue // an open connection that broke, or an answer
			}
			switch kind := failureOf(d.Message); kind {
			case FailedRefused, FailedClosed, FailedUnreachable, FailedNoReply:
				out = append(out, failedAttempt{e.TimeNs, kind})
			}
		}
	}
	for e := range n.Rec.Conns(n.Address, recording.KindClose) {
		if connection.IsRefusedDial(e.ConnDetail) {
			out = append(out, failedAttempt{e.TimeNs, FailedRefused})
		}
	}
	return out
}

// silenceAtEnd is the time from the last answer to the end of the watch, where calls of the probe waited for most of it
// and no attempt had failed yet, with the attempts that still waited; none where there is no such time.
func silenceAtEnd(n *facts.Node, answers []int64) (s facts.Span, waiting map[Failure]int) {
	s = between(answers, n.EndNs, facts.Span{FromNs: n.StartNs, ToNs: n.EndNs})
	if s.ToNs-s.FromNs < minSilenceNs {
		return s, nil
	}
	for _, c := range n.Rec.Calls {
		if c.Node != n.Address || c.Source != recording.SourceProbe || c.Error != unfinished ||
			c.EndNs-c.StartNs < minSilenceNs/2 {
			continue
		}
		if waiting == nil {
			waiting = map[Failure]int{FailedNoReply: 0}
		}
		switch {
		case c.Conn != "fresh":
		case dialling(n.Rec.SegmentsOf(c.ID), c.EndNs):
			waiting[FailedUnreachable]++
		default:
			waiting[FailedNoReply]++
		}
	}
	return s, waiting
}

// dialling reports whether a call still waited for its connection when it ended.
func dialling(segments []recording.Segment, endNs int64) bool {
	return slices.ContainsFunc(segments, func(s recording.Segment) bool {
		return s.State == account.Dial && s.ToNs >= endNs-int64(degree.AtOnce)
	})
}

// answeredUsers reports whether the tap counted calls of clients that were answered in a stretch of time. Its count of
// a second is written up to a second later.
func answeredUsers(n *facts.Node, s facts.Span) bool {
	for _, h := range n.Rec.Histograms {
		if h.Source == recording.SourceTap && h.Node == n.Address && h.Second >= (s.FromNs+connection.TapLateNs)/1e9 &&
			h.Second <= s.ToNs/1e9-1 {
			return true
		}
	}
	return false
}
