package facts

import (
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
