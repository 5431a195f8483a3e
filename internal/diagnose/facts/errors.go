package facts

import (
	"slowpath/internal/recording"
)

// ErrorsOf is by how much the server's count of an error rose; the counter appears with the first error, or when the
// server tells again after a start.
func (n *Node) ErrorCount(code string) (float64, bool) {
	s := n.Info("errorstat_" + code + ".count")
	if len(s) > 0 {
		all := s.Growth()
		for _, e := range n.Events(recording.SourceServer, recording.KindRestart) {
			if e.TimeNs <= s[0].TimeNs {
				return all + s[0].Value, true // since its start, in the watch
			}
		}
		return all, true
	}
	// It has others, so it counts them: or it is of a version that does.
	return 0, len(n.Rec.Names(recording.SourceServer, n.Address, "errorstat_")) > 0 ||
		len(n.Info("total_error_replies")) > 0
}

// PollEvery is how often the server source asks, in nanoseconds.
const PollIntervalNs = 1e9
