package facts

import (
	"time"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
)

// MinShare is the least share of the excess that a finding must explain: others are not why calls were slow.
const MinShare = degree.Part

// What may stay unexplained in a system that is called healthy: now and then a call is delayed by something that no
// source sees, and a verdict that reports each would be useless. Both HealthyMaxShare and HealthyMaxNs must hold.
const (
	// HealthyMaxShare is the largest share of slow calls in a healthy system.
	// Bound: guess, one in a hundred; the share of slow calls of many services that nobody complains about would
	// measure it.
	HealthyMaxShare = 0.01
	// HealthyMaxNs is the longest slow call in a healthy system, in nanoseconds.
	// Bound: noticed, up to a tenth of a second a person takes a reaction for immediate (Miller 1968, Nielsen 1993).
	HealthyMaxNs = int64(100 * time.Millisecond)
	// HealthyMinCalls is the least number of slow calls that is a pattern, whatever their share.
	HealthyMinCalls = account.MinSlowCalls
)
