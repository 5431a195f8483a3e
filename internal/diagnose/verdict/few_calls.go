package verdict

import (
	"fmt"
	"time"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// ruleOfThree over n is the largest share of slow calls, at 95 %, where none of n was slow.
// Bound: statistics, -ln 0.05: of n calls none is slow with the probability (1-share)^n, 5 % at share 3/n.
const ruleOfThree = 3

// enoughCalls is how many calls, if all of them were fast, show that at most HealthyMaxShare of all calls are slow.
const enoughCalls = ruleOfThree / facts.HealthyMaxShare

// longestWatch is the longest time that is proposed.
// Bound: arithmetic, it decides what is said.
const longestWatch = 24 * time.Hour

// fewCalls says that clients made too few calls to call them healthy, and how long to watch; empty where they made
// enough, or were not seen at all.
func fewCalls(c *facts.Case) string {
	users := c.Ledger.Users
	if !c.Rec.Used(recording.SourceTap) || c.Rec.Used(recording.SourceLoad) || float64(users.Calls) >= enoughCalls {
		return ""
	}
	if users.Calls == 0 {
		return " No call of a client was seen."
	}
	s := fmt.Sprintf(" Only %s of clients came", format.Count(users.Calls, "call"))
	if share := ruleOfThree / float64(users.Calls); share < 1 {
		s += fmt.Sprintf(": too few to tell, up to %s of their calls may be slow.", format.WholePercent(share))
	} else {
		s += ": too few to tell."
	}
	seconds := enoughCalls / float64(users.Calls) * c.Seconds()
	watch := min(time.Duration(seconds*float64(time.Second)), longestWatch)
	unit := time.Minute
	if watch > 2*time.Hour {
		unit = time.Hour
	}
	watch = (watch + unit - 1).Truncate(unit)
	return s + fmt.Sprintf(" Watch longer: --for %s.", format.Interval(watch))
}
