package watch

import "time"

// allowance bounds the commands that are sent: never more than perSecond in any second. It is a token bucket whose
// content and refill together are that much.
type allowance struct {
	perSecond float64
	tokens    float64
	at        time.Time // of the last refill
}

// burst is the share of a second's commands that may go out at once.
const burst = 0.25

func newAllowance(perSecond float64, now time.Time) *allowance {
	return &allowance{perSecond: perSecond, tokens: burst * perSecond, at: now}
}

// take reserves n commands. Where they are more than a full bucket holds, a full bucket must do, and goes into debt.
func (a *allowance) take(n int, now time.Time) bool {
	a.tokens = min(burst*a.perSecond, a.tokens+(1-burst)*a.perSecond*now.Sub(a.at).Seconds())
	a.at = now
	if a.tokens < min(float64(n), burst*a.perSecond) {
		return false
	}
	a.tokens -= float64(n)
	return true
}

// giveBack returns what was reserved and not sent; it is negative where more was sent.
func (a *allowance) giveBack(n int) { a.tokens += float64(n) }
