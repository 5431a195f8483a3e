package nodes

import (
	"slices"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// Restart is a restart of the server during the watch. Its times are nanoseconds since the Unix epoch.
type Restart struct {
	facts.Span // from the last answer of the old process to the first of the new one
	// PIDBefore and PIDAfter are its process ids, 0 where the host was not watched.
	PIDBefore, PIDAfter int
	// RunIDBefore and RunIDAfter are the run ids that INFO gave.
	RunIDBefore, RunIDAfter string
	// LoadingNs is for how long it then refused calls while it loaded its data.
	LoadingNs int64
}

// Restarts are those of the node, by the server's own account (run_id, uptime), or by its process.
func Restarts(n *facts.Node) (out []Restart) {
	answers, watch := answerTimes(n), facts.Span{FromNs: n.StartNs, ToNs: n.EndNs}
	loading := RefusingSpans(n, "LOADING")
	for _, e := range n.Events(recording.SourceServer, recording.KindRestart) {
		d := recording.DetailOf[restartDetail](e)
		out = append(out, Restart{
			Span: gapBeforeLoading(answers, loading, e.TimeNs, watch), RunIDBefore: d.RunIDBefore,
			RunIDAfter: d.RunIDAfter,
		})
	}
	ended := n.Events(recording.SourceHost, recording.KindProcessEnded)
	for i, e := range n.Events(recording.SourceHost, recording.KindProcessFound) {
		if i >= len(ended) {
			break
		}
		r := Restart{
			Span:      gapBeforeLoading(answers, loading, ended[i].TimeNs, watch),
			PIDBefore: recording.DetailOf[recording.ServerProcess](ended[i]).PID,
			PIDAfter:  recording.DetailOf[recording.ServerProcess](e).PID,
		}
		if len(out) > i { // the host knows better when it was
			r.RunIDBefore, r.RunIDAfter = out[i].RunIDBefore, out[i].RunIDAfter
			out[i] = r
		} else {
			out = append(out, r)
		}
	}
	for i := range out {
		until := n.EndNs
		if i+1 < len(out) {
			until = out[i+1].FromNs
		}
		out[i].LoadingNs = loading.OverlapNs(out[i].FromNs, until)
	}
	return out
}

// restartDetail is the detail of a restart event.
type restartDetail struct {
	RunIDBefore string `json:"run_id_before"`
	RunIDAfter  string `json:"run_id_after"`
}

// gapBeforeLoading is the longest time without an answer near another time, and before the server began to load its
// data then, if it did: while it loads, it answers late as well, and INFO by seconds.
func gapBeforeLoading(answers []int64, loading facts.Spans, atNs int64, within facts.Span) facts.Span {
	for _, s := range loading {
		if s.FromNs < atNs+connection.UptimeErrorNs && s.ToNs > atNs-connection.UptimeErrorNs {
			within.ToNs = s.FromNs
			return gapNear(answers, s.FromNs, within)
		}
	}
	return gapNear(answers, atNs, within)
}

// gapNear is the longest time without an answer near another time, within a stretch.
func gapNear(answers []int64, atNs int64, within facts.Span) (gap facts.Span) {
	last := within.FromNs
	for _, a := range append(slices.Clone(answers), within.ToNs) {
		a = min(a, within.ToNs)
		if last <= atNs+connection.UptimeErrorNs && a >= atNs-connection.UptimeErrorNs && a-last > gap.ToNs-gap.FromNs {
			gap = facts.Span{FromNs: last, ToNs: a}
		}
		last = max(last, a)
	}
	return gap
}

// OOMKills is how many processes the kernel killed in the server's cgroup because it had reached its memory limit.
func OOMKills(n *facts.Node) (killed float64) {
	for _, of := range []series.Name{series.CgroupMemoryControl("oom_kill"), series.CgroupMemoryEvents("oom_kill")} {
		for _, level := range hosts.CgroupOf(n).Levels {
			killed = max(killed, n.CgroupSeries(level.Path, of).Growth())
		}
	}
	return killed
}
