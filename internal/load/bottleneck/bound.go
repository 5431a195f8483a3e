package bottleneck

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// throttled: a CPU quota held one of the two back, or both.
func (c *reasoning) throttled() Verdict {
	s, g := c.server, c.generator
	if s.throttled >= g.throttled {
		return verdict(ByThrottled, 0.97, "the %sserver was throttled: %s; raise the quota", c.node(), quota(s.quota))
	}
	v := verdict(ByGeneratorCPU, 0.97, "the generator is the limit: it was throttled itself, %s; raise its quota",
		quota(g.quota))
	v.GeneratorLimited = true
	return v
}

// serverBound: the server's busiest thread is hardly ever idle.
func (c *reasoning) serverBound() Verdict {
	s := c.server
	switch {
	case s.blocked >= nearFull-s.run && s.blocked > s.ready:
		return c.blocked()
	case s.ready >= contended:
		return c.competing("server", s.ready)
	}
	v := verdict(ByServerCPU, sure(s.busy()), "%s, %s", c.serverAt(), c.generatorAt())
	if s.Proxy {
		v.Sentence += ": the proxy is the limit"
	}
	return v
}

func (c *reasoning) blocked() Verdict {
	return verdict(ByServerBlocked, 0.9, "the %s was blocked on its disk or for pages %s of the time, and on a CPU "+
		"%s; look at appendfsync and at swapping: slowpath doctor",
		c.who(), percent(c.server.blocked), percent(c.server.run))
}

// node is the address of the busiest server where there are several.
func (c *reasoning) node() string {
	if c.nodes() > 1 || c.server.Proxy {
		return c.server.Address + " "
	}
	return ""
}

// generatorBound: the generator's busiest thread is.
func (c *reasoning) generatorBound() Verdict {
	g, n := c.generator, len(c.threads)
	var v Verdict
	switch {
	case g.ready >= contended && c.oneHost():
		return c.competing("generator", g.ready)
	case g.ready >= contended:
		v = verdict(ByGeneratorCPU, 0.85, "the generator is the limit: it stood ready without a CPU for %s of the "+
			"time; give it CPUs of its own", percent(g.ready))
	default:
		v = verdict(ByGeneratorCPU, sure(g.busy()), "the generator is the limit: its %s at %s; %s", c.busyThreads(n),
			percent(g.busy()), c.moreThreads())
	}
	v.GeneratorLimited = true
	return v
}

// busyThreads is "2 threads are", or which of them it is where some have time left.
func (c *reasoning) busyThreads(n int) string {
	for _, t := range c.threads {
		if t.busy() < nearFull {
			return fmt.Sprintf("busiest of %d threads is", n)
		}
	}
	if n == 1 {
		return "1 thread is"
	}
	return plural(n, "thread") + " are"
}

// moreThreads is what to do about a generator without time.
func (c *reasoning) moreThreads() string {
	n := len(c.threads)
	cpus := len(c.generator.CPUs)
	free := cpus - n
	if c.oneHost() {
		free-- // the server's
	}
	switch {
	case c.Pool != nil:
		return "its workers share a process: use several, on other machines (slowpath merge)"
	case c.Load.Connections <= n:
		return "use more --connections and --threads"
	case free >= 1 || cpus == 0:
		return "use --threads " + strconv.Itoa(min(2*n, max(n+free, n+1), c.Load.Connections))
	}
	return fmt.Sprintf("it has %s only: use a machine with more, or several (slowpath merge)", plural(cpus, "CPU"))
}

// oneCPU: both may run on one CPU only, the same.
func (c *reasoning) oneCPU() bool {
	return c.oneHost() && len(c.generator.CPUs) == 1 && slices.Equal(c.generator.CPUs, c.server.CPUs)
}

// machineFull: no CPU on which the generator may run had time left.
func (c *reasoning) machineFull() bool {
	cpus := c.generator.CPUs
	return len(cpus) > 0 && len(c.Machine) > 0 && c.busyCPUs(cpus) >= nearlyAll*float64(len(cpus))
}

// competing: a thread stood ready without a CPU. Whose doing that is shows in who else had them.
func (c *reasoning) competing(side string, ready float64) Verdict {
	v := Verdict{By: BySharedCPU, Certainty: 0.9, GeneratorLimited: c.oneHost()}
	shared := c.shared()
	server, generator := c.usedCPUs()
	others := max(0, c.busyCPUs(shared)-server-generator)
	switch {
	case !c.oneHost() || len(shared) == 0:
		v.Sentence = fmt.Sprintf("the %s stood ready without a CPU for %s of the time: something else has it; give "+
			"it CPUs of its own", side, percent(ready))
		v.GeneratorLimited = side == "generator"
	case c.oneCPU() && others < contended:
		v.Sentence = fmt.Sprintf("the two share one CPU: server and generator both run on CPU %d only, and the %s "+
			"stood ready for %s of the time; give them a CPU each", shared[0], side, percent(ready))
	case others >= contended && !c.machineFull():
		v.Sentence = fmt.Sprintf("others use %.1f of the %s of this machine, and the %s stood ready without one for "+
			"%s of the time; let the machine come to rest, or use another",
			others, plural(len(shared), "CPU"), side, percent(ready))
		v.Certainty = 0.8
	case others >= contended:
		v.Sentence = fmt.Sprintf("the CPUs are full: others use %.1f of the %s of this machine, and the %s stood "+
			"ready without one for %s of the time; let the machine come to rest, or use another",
			others, plural(len(shared), "CPU"), side, percent(ready))
		v.Certainty = 0.8
	case !c.machineFull():
		v.Sentence = fmt.Sprintf("the %s stood ready without a CPU for %s of the time though there was room on "+
			"others: the scheduler put the two together; pin them to different CPUs (taskset)", side, percent(ready))
		v.Certainty = 0.7
	default:
		do := "use fewer --threads, or another machine for the generator"
		if c.Pool != nil {
			do = "use another machine for the generator"
		}
		v.Sentence = fmt.Sprintf("the CPUs are full: server and generator together use %.1f of %d, and the %s stood "+
			"ready without one for %s of the time; %s",
			server+generator, len(shared), side, percent(ready), do)
	}
	return v
}

// moreReady is competing, from the side that stood ready for longer.
func (c *reasoning) moreReady() Verdict {
	if c.server.ready >= c.generator.ready {
		return c.competing("server", c.server.ready)
	}
	return c.competing("generator", c.generator.ready)
}

// sure is the certainty of a share that shall be full.
func sure(busy float64) float64 {
	if busy >= full {
		return 0.97
	}
	return 0.7 + 0.27*(busy-nearFull)/(full-nearFull)
}

// keptRate: an open loop that sent what was due.
func (c *reasoning) keptRate() bool {
	l := c.Load
	return l.Open && c.Load.AskedPerSecond > 0 &&
		(float64(l.Calls)+float64(l.InFlight))/c.Window.Seconds() >= kept*l.AskedPerSecond
}

func (c *reasoning) rate() Verdict {
	l := c.Load
	if l.LateP99 >= lateBeyond && 2*l.LateP99 >= l.ResponseP99 {
		why := "its thread spins"
		if !c.Generator.BusyPoll {
			why = "its thread is at " + percent(c.generator.busy())
		}
		if c.generator.ready >= noticeable/2 {
			why += fmt.Sprintf(", %s of it ready without a CPU", percent(c.generator.ready))
		}
		do := "others get in its way: give it CPUs of its own"
		switch {
		case c.generator.busy() >= nearFull:
			do = c.moreThreads()
		case !c.Generator.BusyPoll && c.generator.sleeps():
			do = "it is the waking up that takes so long: --busy-poll does not sleep"
		}
		v := verdict(ByGeneratorCPU, 0.85, "the generator was late itself: %s were asked for and sent, but 1 %% of "+
			"them %s or more too late, of a p99 of %s; %s; %s",
			rate(l.AskedPerSecond), span(l.LateP99), span(l.ResponseP99), why, do)
		v.GeneratorLimited = true
		return v
	}
	return verdict(ByRate, 0.97, "the rate that was asked for, %s, was kept: %s", rate(l.AskedPerSecond), c.both())
}

// waiting: nobody is busy, so that calls wait for something else.
func (c *reasoning) waiting() Verdict {
	l, n := c.Load, c.Network
	inFlight := l.Connections * l.Pipeline
	// those of Redis 8 sleep when they have nothing to do
	if mean, threads := c.ioThreads(); threads > 0 && mean >= full {
		return verdict(ByServerCPU, 0.75, "the server's %s are at %s, its main thread at %s: give it more io-threads",
			plural(threads, "I/O thread"), percent(mean), percent(c.server.busy()))
	}
	switch {
	case c.oneHost() && c.server.ready+c.generator.ready >= 2*contended && (c.machineFull() || c.oneCPU()):
		v := c.moreReady()
		v.Certainty = 0.75
		return v
	case c.server.blocked >= most:
		return c.blocked()
	case c.Pool != nil && c.Pool.Wait.Seconds() >= most*(c.Pool.Wait+l.Service).Seconds():
		return verdict(ByPool, 0.9, "neither is busy: your pool of %d hands back under a lock, and its %d callers "+
			"wait %s for a connection before calls of %s (%s)",
			c.Pool.Size, c.Pool.Callers, span(c.Pool.Wait), span(l.Service), c.both())
	case l.Connecting.Seconds() >= most*l.Service.Seconds() && l.Connecting > 0:
		return verdict(ByRoundTrip, 0.9, "opening connections is the limit: %s in flight at %s, %s of them for the "+
			"connection of each call, gives %s (%s); keep connections open, or use more --connections",
			c.flights(), span(l.Service), span(l.Connecting), rate(c.PerSecond()), c.both())
	case n.LinkBits > 0 && n.LinkUsedBits >= linkFull*n.LinkBits:
		return verdict(ByNetwork, 0.95, "the link is the limit: %s of %s on %s (%s)", bits(n.LinkUsedBits),
			bits(n.LinkBits), n.Link, c.both())
	case n.RwndLimited >= 3*noticeable || n.Queued >= most || c.server.Queued >= most:
		return verdict(ByNetwork, 0.8, "the network is the limit: %s wait to get onto the way, at %s/s (%s)",
			c.waitingBytes(), size(n.BytesPerSec), c.both())
	case n.MinRTT > 0 && n.MinRTT.Seconds() >= most*l.Service.Seconds():
		return verdict(ByRoundTrip, 0.95, "the round trip is the limit: %s in flight at %s, %s of them the "+
			"network's, gives %s (%s); use more --connections or --pipeline, or be nearer",
			c.flights(), span(l.Service), span(n.MinRTT), rate(c.PerSecond()), c.both())
	}
	// What both sides do for what is in flight, the wake-ups and the network are all that a call has to wait for when
	// nothing else holds it up.
	own := l.Service.Seconds()*(c.server.busy()+c.generator.busy()) + (n.MinRTT + wakeUps).Seconds()
	if c.server.Sight == SightNone {
		return c.unseen(own)
	}
	if own >= most*l.Service.Seconds() {
		certainty := 0.9
		if inFlight > 16 {
			certainty = 0.7
		}
		return verdict(ByRoundTrip, certainty, "the round trip is the limit: %s in flight at %s gives %s (%s); use "+
			"more --connections or --pipeline",
			c.flights(), span(l.Service), rate(c.PerSecond()), c.both())
	}
	return verdict(ByUnknown, 0.5, "cannot tell: neither is busy (%s), yet a call takes %s, of which their work, the "+
		"wake-ups and the network explain %s; something holds calls up: slowpath doctor may name it",
		c.both(), span(l.Service), span(time.Duration(own*1e9)))
}

// unseen: nothing is known of the server.
func (c *reasoning) unseen(own float64) Verdict {
	why := "it refuses INFO"
	for _, s := range c.Servers {
		if s.Why != "" {
			why = s.Why
		}
	}
	if own >= most*c.Load.Service.Seconds() {
		return verdict(ByRoundTrip, 0.6, "the round trip is probably the limit: %s in flight at %s gives %s, with "+
			"%s; the server cannot be seen (%s)",
			c.flights(), span(c.Load.Service), rate(c.PerSecond()), c.generatorAt(), why)
	}
	return verdict(ByUnknown, 0.5, "cannot tell: the generator is not the limit (%s), and the server cannot be seen "+
		"(%s); let it answer INFO, or run this on its host",
		c.generatorAt(), why)
}

// flights is "1 connection × 16".
func (c *reasoning) flights() string {
	return fmt.Sprintf("%s × %d", plural(c.Load.Connections, "connection"), c.Load.Pipeline)
}

func (c *reasoning) waitingBytes() string {
	var who []string
	if c.Network.RwndLimited >= 3*noticeable || c.Network.Queued >= most {
		who = append(who, "requests")
	}
	if c.server.Queued >= most {
		who = append(who, "replies")
	}
	return strings.Join(who, " and ")
}

// size is bytes: "12.3 MB".
func size(bytes float64) string {
	for _, u := range []struct {
		of   float64
		name string
	}{{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}} {
		if bytes >= u.of {
			return strconv.FormatFloat(bytes/u.of, 'g', 3, 64) + " " + u.name
		}
	}
	return strconv.FormatFloat(bytes, 'f', 0, 64) + " B"
}
