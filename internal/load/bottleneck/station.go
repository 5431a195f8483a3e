package bottleneck

import (
	"slices"
	"strings"
)

// station is one side: its busiest thread, in shares of the window.
type station struct {
	Server            // of the server side; of the generator only Quotas and CPUs are set
	thread    string  // name of the busiest thread, "" for the main one
	run       float64 // on a CPU
	ready     float64 // ready to run, neither on a CPU nor throttled
	throttled float64
	blocked   float64
	quota     Quota // the one that held it
}

// busy is the share in which it was not idle.
func (s station) busy() float64 { return min(1, s.run+s.ready+s.throttled+s.blocked) }

// sleeps reports whether a side had time left, and a CPU whenever it was ready.
func (s station) sleeps() bool {
	return s.busy() < nearFull && s.ready+s.throttled+s.blocked < noticeable/2
}

// reasoning is the observations with what follows from them.
type reasoning struct {
	Observations
	stations  []station // of the servers, as in Observations
	server    station   // the busiest
	generator station
	threads   []station // of the generator
}

func newCase(o Observations) *reasoning {
	c := &reasoning{Observations: o}
	for _, s := range o.Servers {
		st := c.serverStation(s)
		c.stations = append(c.stations, st)
		if c.server.Address == "" || st.busy() > c.server.busy() {
			c.server = st
		}
	}
	for _, t := range o.Generator.Threads {
		st := c.share(t, o.Generator.Quotas)
		st.run *= 1 - o.Generator.Spinning // time in which nothing came is time left
		c.threads = append(c.threads, st)
		if st.busy() > c.generator.busy() {
			c.generator = st
		}
	}
	c.generator.Quotas, c.generator.CPUs = o.Generator.Quotas, o.Generator.CPUs
	return c
}

// share turns times into shares; of the ready time so much is throttled as the cgroup was held back.
func (c *reasoning) share(t Thread, quotas []Quota) station {
	window := c.Window.Seconds()
	if window <= 0 {
		return station{}
	}
	s := station{run: min(1, t.CPU.Seconds()/window), ready: t.Ready.Seconds() / window}
	for _, q := range quotas {
		if q.Throttled > 0 && q.Held > s.quota.Held {
			s.quota = q
		}
	}
	held := s.quota.Held.Seconds() / window
	// The wait that is open at the end is not in Ready yet (kernel/sched/stats.h): a throttled thread was on no CPU
	// either.
	s.throttled = min(held, max(s.ready, 1-s.run))
	s.ready = max(0, s.ready-s.throttled)
	s.ready = min(s.ready, max(0, 1-s.run-s.throttled))
	return s
}

func (c *reasoning) serverStation(s Server) station {
	best := c.share(s.Main, s.Quotas)
	best.blocked = s.Blocked
	for _, t := range s.Others {
		// Threads that serve beside the main one are those of KeyDB, Dragonfly, HAProxy. I/O threads are told apart,
		// those of the background hold nobody up.
		if isIOThread(t.Name) || isBackground(t.Name) {
			continue
		}
		if other := c.share(t, s.Quotas); other.busy() > best.busy() {
			best = other
			best.thread = t.Name
		}
	}
	best.Server = s
	return best
}

// isIOThread knows the names of bio.c and networking.c: io_thd_1 (Redis, Valkey).
func isIOThread(name string) bool { return strings.HasPrefix(name, "io_thd") }

func isBackground(name string) bool {
	return strings.HasPrefix(name, "bio_") || strings.HasPrefix(name, "jemalloc") || strings.HasPrefix(name, "lazy")
}

// ioThreads is the mean share of the server's I/O threads on a CPU, and how many they are.
func (c *reasoning) ioThreads() (mean float64, n int) {
	for _, t := range c.server.Others {
		if isIOThread(t.Name) {
			mean += c.share(t, nil).run
			n++
		}
	}
	if n > 0 {
		mean /= float64(n)
	}
	return mean, n
}

// oneHost: by SightHost the server's process is on the generator's host.
func (c *reasoning) oneHost() bool { return c.server.Sight == SightHost }

// shared are the CPUs where both may run.
func (c *reasoning) shared() []int {
	var both []int
	for _, cpu := range c.generator.CPUs {
		if c.oneHost() && slices.Contains(c.server.CPUs, cpu) {
			both = append(both, cpu)
		}
	}
	return both
}

// busyCPUs is how many of these CPUs were busy, with anything.
func (c *reasoning) busyCPUs(cpus []int) (cores float64) {
	for _, cpu := range cpus {
		cores += c.Machine[cpu].Busy + c.Machine[cpu].Steal
	}
	return cores
}

// usedCPUs is how many CPUs server and generator had on average.
func (c *reasoning) usedCPUs() (server, generator float64) {
	if c.Window <= 0 {
		return 0, 0
	}
	for _, s := range c.Servers {
		if s.Sight != SightHost {
			continue
		}
		server += s.Main.CPU.Seconds() / c.Window.Seconds()
		for _, t := range s.Others {
			server += t.CPU.Seconds() / c.Window.Seconds()
		}
	}
	for _, t := range c.Generator.Threads {
		generator += t.CPU.Seconds() / c.Window.Seconds()
	}
	return server, generator
}
