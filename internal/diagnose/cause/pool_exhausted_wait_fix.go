package cause

import (
	"fmt"
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
)

// poolWaitFix is what helps where connections are always in use.
func poolWaitFix(n *facts.Node, u connection.PoolUse) []remedy.Step {
	inUse := u.CallsPerSecond * float64(u.CallNs) / 1e9
	size := 2 * max(int(inUse)+1, len(u.Used))
	return append(largerPool(n, u.Caller, size, fmt.Sprintf("%s calls per second of %s keep %.1f connections in "+
		"use; twice that leaves room for bursts", format.Rounded(u.CallsPerSecond), format.Brief(u.CallNs), inUse)),
		holdForLessTime)
}

// largerPool gives the option of the caller's library, and why it should be that large.
func largerPool(n *facts.Node, of *caller.Caller, size int, why string) []remedy.Step {
	steps := remedy.Steps(n, remedy.LargerPool, remedy.Values{"connections": size}, of)
	if len(steps) == 0 {
		return []remedy.Step{
			inApplication(string(remedy.LargerPool), "Let the pool have %d connections: %s", size, why),
		}
	}
	return because(steps, why)
}

// holdForLessTime is what helps without a larger pool.
var holdForLessTime = inApplication("hold-for-less-time", "Hold connections for less time: pipelines and MGET instead "+
	"of single calls; no blocking commands (BLPOP, XREAD BLOCK) from the same pool")

// poolSeenFix is what helps where goroutines or threads were seen waiting for a connection.
func poolSeenFix(w hosts.ThreadWait) []remedy.Step {
	size := inApplication(string(remedy.LargerPool), "Size the pool for the waiting callers: %d are in calls at a time",
		w.Calls)
	if option, ok := remedy.StepOf(remedy.PoolSizeOption, strings.ToLower(w.Meaning.Library)); ok {
		size.Text += ". " + option.Sentence()
	}
	return []remedy.Step{size, holdForLessTime}
}
