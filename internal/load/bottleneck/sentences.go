package bottleneck

import (
	"fmt"

	"slowpath/internal/format"
)

func verdict(by string, certainty float64, sentence string, args ...any) Verdict {
	return Verdict{By: by, Certainty: certainty, Sentence: fmt.Sprintf(sentence, args...)}
}

// percent is a share of the window: "98 %".
func percent(share float64) string { return format.WholePercent(min(1, share)) }

// quota is "12 of 50 periods, quota 0.20 cores of /pod/redis".
func quota(q Quota) string {
	text := fmt.Sprintf("%d of %d periods, quota %.2f cores", q.ThrottledPeriods, q.Periods, q.Cores)
	if q.Cgroup != "" {
		text += " of " + q.Cgroup
	}
	return text
}

// serverThread names the busiest thread of the busiest server: "server main thread", "main thread of 10.0.0.1:7001, the
// busiest of 3 nodes,", and a process that is no server: "nutcracker (the proxy)".
func (c *analysis) serverThread() string {
	s := c.server
	thread := "main thread"
	switch {
	case s.thread != "":
		thread = "thread " + s.thread
	case s.Visibility == VisibleProcess:
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

// serverBusy says how busy the server is: "server main thread at 99 %", "nutcracker (the proxy) at 99 % of a core".
func (c *analysis) serverBusy() string {
	at := fmt.Sprintf("%s at %s", c.serverThread(), percent(c.server.busy()))
	if c.server.Process != "" {
		at += " of a core"
	}
	return at
}

// generatorBusy says how busy the generator is. The CPU time of one that spins says nothing, but how much of it found
// nothing to do does.
func (c *analysis) generatorBusy() string {
	if c.Generator.BusyPoll {
		return fmt.Sprintf("the generator spinning, %s of it with nothing to do", percent(c.Generator.Spinning))
	}
	return "the generator at " + percent(c.generator.busy())
}

func (c *analysis) nodes() (n int) {
	for _, s := range c.Servers {
		if !s.Proxy {
			n++
		}
	}
	return n
}

// bothBusy says how busy the two sides are, for sentences about another bottleneck.
func (c *analysis) bothBusy() string {
	server := "what the server does cannot be seen"
	if c.server.Visibility != NotVisible {
		server = c.serverBusy()
	}
	return server + ", " + c.generatorBusy()
}

// evidence is the numbers behind any verdict.
func (c *analysis) evidence() []Fact {
	facts := []Fact{
		{"calls", float64(c.Load.Calls), "calls"},
		{"rate", c.PerSecond(), "calls/s"},
		{
			"service_mean_ns",
			float64(c.Load.Service), "ns",
		},
		{"generator_busy", c.generator.busy(), "share"},
		{"generator_on_cpu", c.generator.run, "share"},
		{"generator_ready", c.generator.runQueue, "share"},
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
		if s.Visibility == NotVisible {
			continue
		}
		name := "server " + s.Address
		facts = append(facts, Fact{name + " busy", s.busy(), "share"}, Fact{name + " on_cpu", s.run, "share"})
		if s.Visibility == VisibleOnHost {
			facts = append(facts, Fact{name + " ready", s.runQueue, "share"}, Fact{
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

// notes say what is not the bottleneck and worth knowing.
func (c *analysis) notes(by string) []string {
	var out []string
	say := func(when bool, note string, args ...any) {
		if when {
			out = append(out, fmt.Sprintf(note, args...))
		}
	}
	say(by != ByThrottled && c.server.quota.ThrottledPeriods > 0 && c.server.throttled >= noticeable/10,
		"the server was throttled at times: %s; it shows in the latencies", quota(c.server.quota))
	if mean, n := c.ioThreads(); n > 0 && mean >= full && c.server.busy() >= nearFull {
		say(true, "the server's %s at %s too (they spin while there is work in Redis 6 and 7): try other io-threads",
			format.Count(n, "I/O thread"), percent(mean))
	}
	say(by == ByServerCPU && c.generator.busy() >= nearFull, "the generator is not far from its limit either, at %s",
		percent(c.generator.busy()))
	say(by == ByGeneratorCPU && c.server.busy() >= nearFull, "the server is not far from its limit either, at %s",
		percent(c.server.busy()))
	say(by != BySharedCPU && c.server.runQueue >= noticeable, "the server's thread waited in the run queue for %s "+
		"of the time", percent(c.server.runQueue))
	say(by != BySharedCPU && by != ByGeneratorCPU && c.generator.runQueue >= noticeable, "the generator's thread "+
		"waited in the run queue for %s of the time: some of the latency is its own", percent(c.generator.runQueue))
	say(by != ByGeneratorCPU && c.generator.throttled >= noticeable/10, "the generator was throttled at times: %s; "+
		"some of the latency is its own", quota(c.generator.quota))
	if n := c.Network.Retransmits; n > 0 && by != ByNetwork {
		say(true, "%s retransmitted on the connections that were sampled", format.Count(int(n), "segment"))
	}
	for _, s := range c.Servers {
		say(s.Visibility == NotVisible && s.WhyNotVisible != "" && by != ByUnknown, "%s was not seen: %s", s.Address,
			s.WhyNotVisible)
	}
	return out
}
