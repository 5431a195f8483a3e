package watch

import "time"

// rateLimit bounds the commands that are sent: never more than perSecond in any second. It is a token bucket whose
// size and refill of one second add up to perSecond.
type rateLimit struct {
	perSecond float64
	tokens    float64
	at        time.Time // of the last refill
}

// burst is the share of a second's commands that may go out at once.
const burst = 0.25

func newRateLimit(perSecond float64, now time.Time) *rateLimit {
	return &rateLimit{perSecond: perSecond, tokens: burst * perSecond, at: now}
}

// take reserves n commands. If n is more than a full bucket holds, a full bucket is enough and becomes negative.
func (r *rateLimit) take(n int, now time.Time) bool {
	r.tokens = min(burst*r.perSecond, r.tokens+(1-burst)*r.perSecond*now.Sub(r.at).Seconds())
	r.at = now
	if r.tokens < min(float64(n), burst*r.perSecond) {
		return false
	}
	r.tokens -= float64(n)
	return true
}

// refund returns commands that were reserved and not sent; n is negative if more were sent.
func (r *rateLimit) refund(n int) { r.tokens += float64(n) }
