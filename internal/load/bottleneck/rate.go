package bottleneck

import (
	"fmt"

	"slowpath/internal/format"
)

// keptRate: an open loop that sent what was due.
func (c *analysis) keptRate() bool {
	l := c.Load
	return l.Open && l.AskedPerSecond > 0 &&
		(float64(l.Calls)+float64(l.InFlight))/c.Window.Seconds() >= rateKept*l.AskedPerSecond
}

// rate: the schedule was kept. The generator is the bottleneck all the same where its own delay is most of the latency.
func (c *analysis) rate() Verdict {
	l := c.Load
	if l.LateP99 < lateThreshold || 2*l.LateP99 < l.ResponseP99 {
		return verdict(ByRate, 0.97, "the rate that was asked for, %s, was kept: %s", format.Rate(l.AskedPerSecond),
			c.bothBusy())
	}
	why := "its thread spins"
	if !c.Generator.BusyPoll {
		why = "its thread is at " + percent(c.generator.busy())
	}
	if c.generator.runQueue >= noticeable/2 {
		why += fmt.Sprintf(", %s of it in the run queue", percent(c.generator.runQueue))
	}
	do := "others keep it off the CPU: give it CPUs of its own"
	switch {
	case c.generator.busy() >= nearFull:
		do = c.moreThreads()
	case !c.Generator.BusyPoll && c.generator.sleeps():
		do = "its wake-ups take that long: --busy-poll does not sleep"
	}
	v := verdict(ByGeneratorCPU, 0.85, "the generator itself was late: %s were asked for and sent, but 1 %% of them "+
		"at least %s late, of a p99 of %s; %s; %s",
		format.Rate(l.AskedPerSecond), format.Brief(l.LateP99), format.Brief(l.ResponseP99), why, do)
	v.GeneratorLimited = true
	return v
}
