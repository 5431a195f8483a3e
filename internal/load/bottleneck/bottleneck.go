// Package bottleneck says what limited a load, in one sentence: the server, the generator, the network, a pool, a
// quota, or the rate that was asked for. It is a pure function of what was observed.
//
// The rule is that of a closed network of queues: the station that is never idle is the bottleneck. A thread is not
// idle while it is on a CPU, in the run queue, throttled, or blocked on the disk. Where all are idle at times, calls
// wait for the round trip, and by Little's law the rate is the calls in flight divided by the time of a call.
package bottleneck

import (
	"fmt"
	"time"

	"slowpath/internal/format"
)

// What limited a load: stable ids, limited_by in JSON.
const (
	ByServerCPU     = "server-cpu"     // the server's thread has no time left
	ByServerBlocked = "server-blocked" // it waits for its disk or for pages
	ByThrottled     = "throttled"      // the server's CPU quota was used up
	ByGeneratorCPU  = "generator-cpu"  // the load generator has no time left: the server could do more
	BySharedCPU     = "shared-cpu"     // server and generator, or others, compete for the same CPUs
	ByPool          = "pool"           // callers wait for a connection of their pool
	ByNetwork       = "network"        // the link, its lost packets or its windows
	ByRoundTrip     = "round-trip"     // calls in flight and the time of a call, while neither side is busy
	ByRate          = "rate"           // the rate that was asked for
	ByUnknown       = "unknown"
)

// Verdict is what limited a load.
type Verdict struct {
	By        string  `json:"by"`
	Sentence  string  `json:"sentence"`
	Certainty float64 `json:"certainty"` // 0 to 1
	// GeneratorLimited: the load says as much about the generator or its host as about the server.
	GeneratorLimited bool     `json:"generator_limited"`
	Evidence         []Fact   `json:"evidence"`
	Notes            []string `json:"beside,omitempty"` // what else is worth knowing
	sleeps           bool     // the generator; see GeneratorSleeps
}

// Fact is a number that supports the verdict.
type Fact struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// GeneratorSleeps reports whether the generator's busiest thread had time left, and a CPU whenever it was ready to
// run. It is false for a verdict that was read from a document.
func (v Verdict) GeneratorSleeps() bool { return v.sleeps }

// Bounds. Shares are of the window.
const (
	// full is a thread without time left. schedstat lags by up to a timer tick of 4 ms (HZ=250), and both ends of the
	// window by a reading.
	full = 0.95
	// nearFull: doubling the load could still not give a fifth more.
	nearFull = 0.85
	// contended is the share of time in the run queue from which others compete for the CPU. Below it are the short
	// waits of every wake-up.
	contended = 0.15
	// noticeable is a share that shows in the latencies.
	noticeable  = 0.10
	allCPUsBusy = 0.9 // of several CPUs: a scheduler that moves threads leaves short gaps
	majority    = 0.5
	// rateKept is the share of the schedule from which a rate was kept: calls in flight at the end are not done.
	rateKept = 0.99
	// linkFull leaves the frames' headers: 78 of 1 538 bytes (Ethernet, IPv4 and TCP with time stamps).
	linkFull = 0.9
	// wakeUps is the time of a call that no thread's CPU time shows: two wake-ups of a sleeping thread, each 10 µs and
	// more on a busy host.
	wakeUps = 100 * time.Microsecond
	// lateThreshold is a lateness above that of a wake-up.
	lateThreshold  = 200 * time.Microsecond
	shortestWindow = 100 * time.Millisecond // here a timer tick is 4 % of the window
)

// Of says what limited the load that was observed.
func Of(o Observations) Verdict {
	c := analyse(o)
	v := c.judge()
	if c.Load.Open && v.By != ByRate && !c.keptRate() {
		v.Sentence = fmt.Sprintf("the schedule was not kept, %s of %s: %s", format.Rate(c.PerSecond()),
			format.Rate(c.Load.AskedPerSecond), v.Sentence)
	}
	v.Evidence = c.evidence()
	v.sleeps = len(c.threads) > 0 && c.generator.sleeps()
	v.Notes = append(v.Notes, c.notes(v.By)...)
	v.Certainty *= c.certainty()
	return v
}

// judge checks in the order in which one bottleneck hides another.
func (c *analysis) judge() Verdict {
	switch {
	case c.Load.Calls == 0:
		return Verdict{By: ByUnknown, Sentence: "cannot tell: no call had a reply"}
	case c.Window < shortestWindow:
		return verdict(ByUnknown, 0, "cannot tell: the load lasted %s only; give it --for 5s", format.Brief(c.Window))
	case c.keptRate():
		return c.rate()
	}
	server, generator := c.server.busy(), c.generator.busy()
	switch {
	// A quota also stops a thread that is not busy all the time: with few calls in flight the rest of each period is
	// lost.
	case max(c.server.throttled, c.generator.throttled) >= noticeable:
		return c.throttled()
	case max(server, generator) < nearFull:
		return c.notBusy()
	case server >= generator:
		return c.serverBound()
	}
	return c.generatorBound()
}

// certainty is the factor that lowers the certainty of a short window, or of a server that is partly visible.
func (c *analysis) certainty() float64 {
	f := 1.0
	if c.Window < time.Second {
		f *= 0.8
	}
	switch c.server.Visibility {
	case VisibleProcess:
		f *= 0.9
	case NotVisible:
		f *= 0.8
	}
	return f
}
