package facts

import (
	"fmt"
	"time"
)

const (
	MinShare = 0.1 // findings that explain less of the excess are left out: they are not why calls were slow
)

// What may stay unexplained in a system that is called healthy: now and then a call is held up by something below every
// source, and a verdict that cries over each would be useless. Both bounds must hold.
const (
	HealthyMaxShare = 0.01                          // of the calls slow
	HealthyMaxNs    = int64(100 * time.Millisecond) // the slowest of them
	HealthyMinCalls = 3                             // fewer slow calls than this are no pattern, whatever their share
)

// Dur prints nanoseconds with three digits: 0.084 ms, 12.3 ms, 1.52 s.
func Dur(ns int64) string {
	switch {
	case ns >= 1e9:
		return fmt.Sprintf("%.3g s", float64(ns)/1e9)
	case ns >= 1e5:
		return fmt.Sprintf("%.3g ms", float64(ns)/1e6)
	default:
		return fmt.Sprintf("%.3g µs", float64(ns)/1e3)
	}
}
