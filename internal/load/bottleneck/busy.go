package bottleneck

import (
	"fmt"
	"strconv"

	"slowpath/internal/format"
)

// throttled: a CPU quota held one of the two back, or both.
func (c *analysis) throttled() Verdict {
	s, g := c.server, c.generator
	if s.throttled >= g.throttled {
		return verdict(ByThrottled, 0.97, "the %sserver was throttled: %s; raise the quota", c.node(), quota(s.quota))
	}
	v := verdict(ByGeneratorCPU, 0.97, "the generator is the bottleneck: it was throttled, %s; raise its quota",
		quota(g.quota))
	v.GeneratorLimited = true
	return v
}

// serverBound: the server's busiest thread is hardly ever idle.
func (c *analysis) serverBound() Verdict {
	s := c.server
	switch {
	case s.blocked >= nearFull-s.run && s.blocked > s.runQueue:
		return c.blocked()
	case s.runQueue >= contended:
		return c.sharedCPU("server", s.runQueue)
	}
	v := verdict(ByServerCPU, certaintyOf(s.busy()), "%s, %s", c.serverBusy(), c.generatorBusy())
	if s.Proxy {
		v.Sentence += ": the proxy is the bottleneck"
	}
	return v
}

func (c *analysis) blocked() Verdict {
	return verdict(ByServerBlocked, 0.9, "the %s was blocked on its disk or for pages %s of the time, and on a CPU "+
		"%s; check appendfsync and swapping: slowpath doctor shows which",
		c.serverThread(), percent(c.server.blocked), percent(c.server.run))
}

// node is the address of the busiest server where there are several.
func (c *analysis) node() string {
	if c.nodes() > 1 || c.server.Proxy {
		return c.server.Address + " "
	}
	return ""
}

// generatorBound: the generator's busiest thread is hardly ever idle.
func (c *analysis) generatorBound() Verdict {
	g := c.generator
	var v Verdict
	switch {
	case g.runQueue >= contended && c.oneHost():
		return c.sharedCPU("generator", g.runQueue)
	case g.runQueue >= contended:
		v = verdict(ByGeneratorCPU, 0.85, "the generator is the bottleneck: it waited in the run queue for %s of the "+
			"time; give it CPUs of its own", percent(g.runQueue))
	default:
		v = verdict(ByGeneratorCPU, certaintyOf(g.busy()), "the generator is the bottleneck: its %s at %s; %s",
			c.busyThreads(), percent(g.busy()), c.moreThreads())
	}
	v.GeneratorLimited = true
	return v
}

// busyThreads is "2 threads are", or "busiest of 2 threads is" where some have time left.
func (c *analysis) busyThreads() string {
	n := len(c.threads)
	for _, t := range c.threads {
		if t.busy() < nearFull {
			return fmt.Sprintf("busiest of %d threads is", n)
		}
	}
	if n == 1 {
		return "1 thread is"
	}
	return format.Count(n, "thread") + " are"
}

// moreThreads is what to do about a generator without time left.
func (c *analysis) moreThreads() string {
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
	return fmt.Sprintf("it has %s only: use a machine with more, or several (slowpath merge)",
		format.Count(cpus, "CPU"))
}

// certaintyOf a thread's share that should be full.
func certaintyOf(busy float64) float64 {
	if busy >= full {
		return 0.97
	}
	return 0.7 + 0.27*(busy-nearFull)/(full-nearFull)
}
