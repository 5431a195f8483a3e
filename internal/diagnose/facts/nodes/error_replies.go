package nodes

import (
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// ErrorCount is how many error replies with a code the server counted during the watch; ok is false where it does not
// count them (before 6.2). The counter appears with the first error, or when the server answers again after a restart.
func ErrorCount(n *facts.Node, code string) (float64, bool) {
	s := n.Series(series.ErrorCount(code))
	if len(s) > 0 {
		for _, e := range n.Events(recording.SourceServer, recording.KindRestart) {
			if e.TimeNs <= s[0].TimeNs {
				return s.Growth() + s[0].Value, true // it restarted during the watch: all of them are new
			}
		}
		return growthSinceStart(n, series.ErrorCount(code)), true
	}
	// It counts other errors, or is of a version that counts them.
	return 0, len(n.Rec.Names(recording.SourceServer, n.Address, series.ErrorPrefix)) > 0 ||
		len(n.Series(series.TotalErrorReplies)) > 0
}

// movedReplies is the number of MOVED replies of all nodes; -1 where none of them counts errors by code.
func movedReplies(c *facts.Case) float64 {
	total, counted := 0.0, false
	for _, n := range c.Nodes {
		total += n.Growth(series.ErrorCount("MOVED"))
		// Since 6.2 a server has the field of an error after the first one, and total_error_replies from its start.
		counted = counted || len(n.Series(series.ErrorCount("MOVED"))) > 0 ||
			len(n.Series(series.TotalErrorReplies)) > 0
	}
	if !counted {
		return -1
	}
	return total
}
