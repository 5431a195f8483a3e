package nodes

import (
	"math"
	"slices"
	"strings"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// answersEvery is how often, at least, a healthy node is seen to answer, in nanoseconds: the probe calls many times per
// second, the server source once, and either may be late on a busy host.
func answersEvery(n *facts.Node) int64 {
	if _, probed := n.Ledger.Path(n.Address, "kept"); probed {
		return int64(degree.Long)
	}
	return 2 * int64(facts.PollIntervalNs)
}

// lastAnswerOfAny is the last answer of any node: what is asked last is asked until a silent node has had its time.
func lastAnswerOfAny(c *facts.Case) (last int64) {
	for _, n := range c.Nodes {
		last = max(last, lastAnswer(n, c.EndNs))
	}
	return last
}

// answerTimes are the times at which this node was seen to answer anybody, sorted: slowpath's own calls, INFO, and
// calls of its clients.
func answerTimes(n *facts.Node) []int64 { return facts.Once(n, "answers", findAnswerTimes) }

func findAnswerTimes(n *facts.Node) (times []int64) {
	for _, p := range n.Series(series.UptimeInSeconds) {
		times = append(times, p.TimeNs)
	}
	for _, c := range n.Rec.Calls {
		if c.Node == n.Address && hadReply(c) {
			times = append(times, c.EndNs)
		}
	}
	slices.Sort(times)
	return times
}

// hadReply reports whether a call had a reply. An error that is a reply is its code, LOADING, or "error reply" of the
// tap.
func hadReply(c recording.Call) bool {
	return !strings.Contains(c.Error, " ") || c.Error == "error reply"
}

// lastAnswer is the last answer before a time; 0 where there was none.
func lastAnswer(n *facts.Node, before int64) int64 {
	return between(answerTimes(n), before, facts.Span{}).FromNs
}

// firstAnswer is the first answer after a time; 0 where there was none.
func firstAnswer(n *facts.Node, after int64) int64 {
	if to := between(answerTimes(n), after, facts.Span{ToNs: math.MaxInt64}).ToNs; to < math.MaxInt64 {
		return to
	}
	return 0
}

// stoppedSince is for how long the node's process was stopped after a time, in nanoseconds.
func stoppedSince(n *facts.Node, ns int64) (stopped int64) {
	for _, source := range []string{recording.SourceTap, recording.SourceHost} {
		var sum int64
		for _, e := range n.Events(source, recording.KindFrozen) {
			sum += max(e.TimeNs+e.DurationNs-max(e.TimeNs, ns), 0)
		}
		stopped = max(stopped, sum)
	}
	return stopped
}

// Stopped is the process id of the server, as its host has it, and its frozen cgroup, where the process was seen to be
// stopped: 0 and empty where they are not known.
func Stopped(n *facts.Node) (pid int, cgroup string) {
	for _, source := range []string{recording.SourceTap, recording.SourceHost} {
		for _, e := range n.Events(source, recording.KindFrozen) {
			d := recording.DetailOf[recording.ThreadDetail](e)
			if d.TID > 0 {
				pid = d.TID // of the main thread: the process's own
			}
			if d.Cgroup != "" {
				cgroup = d.Cgroup
			}
		}
	}
	return pid, cgroup
}

// PollBefore narrows a stretch of time, at whose end a poll of the server showed a change, to the time since the poll
// before that one.
func PollBefore(n *facts.Node, s facts.Span) facts.Span {
	last := s.FromNs
	for _, p := range n.Events(recording.SourceServer, recording.KindPoll) {
		if p.TimeNs >= s.ToNs {
			break
		}
		s.FromNs, last = max(s.FromNs, last), max(last, p.TimeNs)
	}
	return s
}

// ClusterDownNs is for how long the node said, until its last answer, that its cluster is down, in nanoseconds.
func ClusterDownNs(n *facts.Node) int64 {
	since := int64(0)
	for _, t := range n.InfoTexts {
		switch {
		case t.ClusterState != "fail":
			since = 0
		case since == 0:
			since = max(t.TimeNs, n.StartNs)
		}
	}
	if since == 0 {
		return 0
	}
	return max(min(lastAnswer(n, n.EndNs), n.EndNs)-since, 0)
}
