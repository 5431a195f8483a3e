package bottleneck

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

func verdict(by string, certainty float64, format string, args ...any) Verdict {
	return Verdict{By: by, Certainty: certainty, Sentence: fmt.Sprintf(format, args...)}
}

// percent is a share of the window: "98 %".
func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*min(1, share)) }

// rate is calls per second with thin thousands: "22 200/s".
func rate(perSecond float64) string {
	if perSecond < 100 {
		return strconv.FormatFloat(perSecond, 'g', 3, 64) + "/s"
	}
	digits := strconv.FormatFloat(math.Round(perSecond), 'f', 0, 64)
	var parts []string
	for len(digits) > 3 {
		parts = append([]string{digits[len(digits)-3:]}, parts...)
		digits = digits[:len(digits)-3]
	}
	return strings.Join(append([]string{digits}, parts...), " ") + "/s"
}

// span is a duration with three significant digits: "45.3 µs".
func span(d time.Duration) string {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	d = d.Round(unit)
	switch {
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", d)
	case d < time.Millisecond:
		return fmt.Sprintf("%.4g µs", float64(d)/1e3)
	case d < time.Second:
		return fmt.Sprintf("%.4g ms", float64(d)/1e6)
	}
	return fmt.Sprintf("%.4g s", d.Seconds())
}

// plural is "1 thread", "2 threads".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// bits is a speed: "9.4 Gbit/s".
func bits(perSecond float64) string {
	for _, u := range []struct {
		of   float64
		name string
	}{{1e9, "Gbit/s"}, {1e6, "Mbit/s"}} {
		if perSecond >= u.of {
			return strconv.FormatFloat(perSecond/u.of, 'g', 3, 64) + " " + u.name
		}
	}
	return strconv.FormatFloat(perSecond/1e3, 'g', 3, 64) + " kbit/s"
}

// quota is "12 of 50 periods, quota 0.20 cores of /pod/redis".
func quota(q Quota) string {
	text := fmt.Sprintf("%d of %d periods, quota %.2f cores", q.Throttled, q.Periods, q.Cores)
	if q.Cgroup != "" {
		text += " of " + q.Cgroup
	}
	return text
}

// who names the busiest thread of the busiest server: "server main thread", "main thread of 10.0.0.1:7001, the busiest
// of 3 nodes,", and a process that is no server: "nutcracker (the proxy)".
func (c *reasoning) who() string {
	s := c.server
	thread := "main thread"
	switch {
	case s.thread != "":
		thread = "thread " + s.thread
	case s.Sight == SightProcess:
		thread = "process"
	}
	switch {
	case s.Process != "" && s.thread != "":
		return "a thread of " + s.process()
	case s.Process != "":
		return s.process()
	case s.Proxy:
		return fmt.Sprintf("%s of the proxy at %s", thread, s.Address)
	case c.nodes() > 1:
		return fmt.Sprintf("%s of %s, the busiest of %d nodes,", thread, s.Address, c.nodes())
	}
	return "server " + thread
}

// process is "nutcracker (the proxy)".
func (s *Server) process() string {
	if s.Proxy {
		return s.Process + " (the proxy)"
	}
	return s.Process
}

// serverAt says how busy the server is: "server main thread at 99 %", "nutcracker (the proxy) at 99 % of a core".
func (c *reasoning) serverAt() string {
	at := fmt.Sprintf("%s at %s", c.who(), percent(c.server.busy()))
	if c.server.Process != "" {
		at += " of a core"
	}
	return at
}

// generatorAt says how busy the generator is. The time of one that spins says nothing, but how much of it was in vain
// does.
func (c *reasoning) generatorAt() string {
	if c.Generator.BusyPoll {
		return fmt.Sprintf("the generator spinning, %s of it in vain", percent(c.Generator.Spinning))
	}
	return "the generator at " + percent(c.generator.busy())
}

func (c *reasoning) nodes() (n int) {
	for _, s := range c.Servers {
		if !s.Proxy {
			n++
		}
	}
	return n
}

// both says how busy the two sides are, for sentences about something else.
func (c *reasoning) both() string {
	server := "what the server does cannot be seen"
	if c.server.Sight != SightNone {
		server = c.serverAt()
	}
	return server + ", " + c.generatorAt()
}

// evidence is the figures behind any verdict.
func (c *reasoning) evidence() []Fact {
	facts := []Fact{
		{"calls", float64(c.Load.Calls), "calls"},
		{"rate", c.PerSecond(), "calls/s"},
		{
			"service_mean_ns",
			float64(c.Load.Service), "ns",
		},
		{"generator_busy", c.generator.busy(), "share"},
		{"generator_on_cpu", c.generator.run, "share"},
		{"generator_ready", c.generator.ready, "share"},
		{"generator_throttled", c.generator.throttled, "share"},
	}
	if c.Load.Open {
		facts = append(facts, Fact{"rate_asked", c.Load.AskedPerSecond, "calls/s"}, Fact{
			"late_p99_ns",
			float64(c.Load.LateP99), "ns",
		})
	}
	if c.Generator.Spinning > 0 {
		facts = append(facts, Fact{"generator_spun", c.Generator.Spinning, "share of its CPU time"})
	}
	if p := c.Pool; p != nil {
		facts = append(facts, Fact{"pool_wait_mean_ns", float64(p.Wait), "ns"})
	}
	for _, s := range c.stations {
		if s.Sight == SightNone {
			continue
		}
		name := "server " + s.Address
		facts = append(facts, Fact{name + " busy", s.busy(), "share"}, Fact{name + " on_cpu", s.run, "share"})
		if s.Sight == SightHost {
			facts = append(facts, Fact{name + " ready", s.ready, "share"}, Fact{
				name + " throttled", s.throttled,
				"share",
			}, Fact{name + " blocked", s.blocked, "share"})
		}
	}
	if c.Network.MinRTT > 0 {
		facts = append(facts, Fact{"network_min_rtt_ns", float64(c.Network.MinRTT), "ns"})
	}
	if c.Network.Retransmits > 0 {
		facts = append(facts, Fact{"network_retransmits", float64(c.Network.Retransmits), "segments"})
	}
	if c.Network.LinkBits > 0 {
		facts = append(facts, Fact{"link " + c.Network.Link, c.Network.LinkUsedBits / c.Network.LinkBits, "share"})
	}
	return facts
}

// beside says what did not limit the load and is worth knowing all the same.
func (c *reasoning) beside(by string) []string {
	var out []string
	say := func(when bool, format string, args ...any) {
		if when {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	say(by != ByThrottled && c.server.quota.Throttled > 0 && c.server.throttled >= noticeable/10,
		"the server was throttled at times: %s; it shows in the latencies", quota(c.server.quota))
	if mean, n := c.ioThreads(); n > 0 && mean >= full && c.server.busy() >= nearFull {
		say(true, "the server's %s at %s too (they spin while there is work in Redis 6 and 7): try other io-threads",
			plural(n, "I/O thread"), percent(mean))
	}
	say(by == ByServerCPU && c.generator.busy() >= nearFull, "the generator is not far from its limit either, at %s",
		percent(c.generator.busy()))
	say(by == ByGeneratorCPU && c.server.busy() >= nearFull, "the server is not far from its limit either, at %s",
		percent(c.server.busy()))
	say(by != BySharedCPU && c.server.ready >= noticeable, "the server's thread stood ready without a CPU for %s of "+
		"the time", percent(c.server.ready))
	say(by != BySharedCPU && by != ByGeneratorCPU && c.generator.ready >= noticeable, "the generator's thread stood "+
		"ready without a CPU for %s of the time: some of the latency is its own", percent(c.generator.ready))
	say(by != ByGeneratorCPU && c.generator.throttled >= noticeable/10, "the generator was throttled at times: %s; "+
		"some of the latency is its own", quota(c.generator.quota))
	if n := c.Network.Retransmits; n > 0 && by != ByNetwork {
		say(true, "%s sent again by TCP on the connections that were looked at", plural(int(n), "segment"))
	}
	for _, s := range c.Servers {
		say(s.Sight == SightNone && s.Why != "" && by != ByUnknown, "%s was not seen: %s", s.Address, s.Why)
	}
	return out
}
