// Package bottleneck says what limited a load, in one sentence: the server, the generator, the way between, a pool, a
// quota, or the rate that was asked for. It is a pure function of what was observed.
//
// The rule is that of a closed pipeline of stations: the one that is never idle is the limit. A thread is not idle
// while it is on a CPU, ready but without one, throttled, or blocked on the disk. Where all are idle at times, calls
// wait for the way there and back, and by Little's law the rate is what is in flight divided by the time of a call.
package bottleneck

import (
	"fmt"
	"time"
)

// What limited a load: stable ids, limited_by in JSON.
const (
	ByServerCPU     = "server-cpu"     // the server's thread has no time left
	ByServerBlocked = "server-blocked" // it waits for its disk or for pages
	ByThrottled     = "throttled"      // the server's CPU quota was used up
	ByGeneratorCPU  = "generator-cpu"  // the load generator has no time left: the server could do more
	BySharedCPU     = "shared-cpu"     // server and generator, or others, compete for the same CPUs
	ByPool          = "pool"           // callers wait for a connection of their pool
	ByNetwork       = "network"        // the link, its losses or its windows
	ByRoundTrip     = "round-trip"     // what is in flight, and the time of a call, though nobody is busy
	ByRate          = "rate"           // the rate that was asked for
	ByUnknown       = "unknown"
)

// Verdict is what limited a load.
type Verdict struct {
	By        string  `json:"by"`
	Sentence  string  `json:"sentence"`
	Certainty float64 `json:"certainty"` // 0 to 1
	// GeneratorLimited: the figures are as much those of the generator or of its host as of the server.
	GeneratorLimited bool     `json:"generator_limited"`
	Evidence         []Fact   `json:"evidence"`
	Beside           []string `json:"beside,omitempty"` // what else is worth knowing
	sleeps           bool     // the generator; see GeneratorSleeps
}

// Fact is a number that speaks for the verdict.
type Fact struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// GeneratorSleeps reports whether the generator's busiest thread had time left, and a CPU whenever it was ready. A
// verdict that was read from a document does not know.
func (v Verdict) GeneratorSleeps() bool { return v.sleeps }

// Bounds. Shares are of the window.
const (
	// full is a thread without time left. schedstat lags by up to a timer tick of 4 ms (HZ=250), and both ends of the
	// window by a reading.
	full = 0.95
	// nearFull: doubling the load could still not give a fifth more.
	nearFull = 0.85
	// contended is the share of ready time beyond which it is another's doing, and not the wake-ups that every thread
	// waits for a little.
	contended = 0.15
	// noticeable is a share that shows in the figures.
	noticeable = 0.10
	nearlyAll  = 0.9 // of several CPUs: a scheduler that moves threads leaves a gap now and then
	most       = 0.5
	// kept is the share of the schedule that makes a rate kept: what is in flight at the end is not in yet.
	kept = 0.99
	// linkFull leaves the frames' headers: 78 of 1 538 bytes (Ethernet, IPv4 and TCP with time stamps).
	linkFull = 0.9
	// wakeUps is the time of a call that no thread's CPU time shows: two wake-ups of a sleeping thread, each some ten
	// µs and more on a busy host.
	wakeUps = 100 * time.Microsecond
	// lateBeyond is lateness that is more than a wake-up's.
	lateBeyond = 200 * time.Microsecond
	shortest   = 100 * time.Millisecond // window in which a timer tick is 4 %
)

// Of judges.
func Of(o Observations) Verdict {
	c := newCase(o)
	v := c.judge()
	if c.Load.Open && v.By != ByRate && !c.keptRate() {
		v.Sentence = fmt.Sprintf("the schedule was not kept, %s of %s: %s", rate(c.PerSecond()),
			rate(c.Load.AskedPerSecond), v.Sentence)
	}
	v.Evidence = c.evidence()
	v.sleeps = len(c.threads) > 0 && c.generator.sleeps()
	v.Beside = append(v.Beside, c.beside(v.By)...)
	v.Certainty *= c.clarity()
	return v
}

// judge asks in the order in which one thing hides another.
func (c *reasoning) judge() Verdict {
	switch {
	case c.Load.Calls == 0:
		return Verdict{By: ByUnknown, Sentence: "cannot tell: no call had a reply"}
	case c.Window < shortest:
		return verdict(ByUnknown, 0, "cannot tell: the load lasted %s only; give it --for 5s", span(c.Window))
	case c.keptRate():
		return c.rate()
	}
	server, generator := c.server.busy(), c.generator.busy()
	switch {
	// A quota stops a thread that is not busy all the time, too: few calls in flight, and the rest of each period is
	// lost.
	case max(c.server.throttled, c.generator.throttled) >= noticeable:
		return c.throttled()
	case max(server, generator) < nearFull:
		return c.waiting()
	case server >= generator:
		return c.serverBound()
	}
	return c.generatorBound()
}

// clarity lowers the certainty where the window is short or the sight is poor.
func (c *reasoning) clarity() float64 {
	f := 1.0
	if c.Window < time.Second {
		f *= 0.8
	}
	switch c.server.Sight {
	case SightProcess:
		f *= 0.9
	case SightNone:
		f *= 0.8
	}
	return f
}
