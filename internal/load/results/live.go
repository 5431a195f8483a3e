package results

import (
	"fmt"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/load/bench"
)

// LoadLine is the last second of a load that runs, in one line that begins with what changes. errors are those since
// the start; total is 0 where the load has no known end.
func LoadLine(s bench.Second, errors int64, connections int, total time.Duration) string {
	line := fmt.Sprintf("%d s", s.Second+1)
	if total > 0 {
		line = fmt.Sprintf("%d of %.0f s", s.Second+1, total.Seconds())
	}
	perSecond := 0.0
	if s.Seconds > 0 {
		perSecond = float64(s.Requests) / s.Seconds
	}
	line += ": " + format.Rate(perSecond)
	if s.MaxNs > 0 {
		line += fmt.Sprintf(", p50 %s, p99 %s, max %s", format.Duration(s.P50Ns), format.Duration(s.P99Ns),
			format.Duration(s.MaxNs))
	}
	line += fmt.Sprintf(", %s in flight", format.Compact(s.InFlight))
	if errors > 0 {
		line += ", " + format.Count(errors, "error")
	}
	if s.Retried > 0 {
		line += ", " + format.Thousands(s.Retried) + " sent again"
	}
	if down := connections - s.Connected; down > 0 {
		line += fmt.Sprintf(", %d down", down)
	}
	return line
}
