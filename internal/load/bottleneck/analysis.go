package bottleneck

import (
	"slices"
	"strings"
)

// station is one side of the load, by its busiest thread, in shares of the window.
type station struct {
	Server            // of the server side; of the generator only Quotas and CPUs are set
	thread    string  // name of the busiest thread, "" for the main thread
	run       float64 // on a CPU
	runQueue  float64 // ready to run, neither on a CPU nor throttled
	throttled float64
	blocked   float64
	quota     Quota // the one that throttled it
}

// busy is the share in which it was not idle.
func (s station) busy() float64 { return min(1, s.run+s.runQueue+s.throttled+s.blocked) }

// sleeps reports whether a side had time left, and a CPU whenever it was ready to run.
func (s station) sleeps() bool {
	return s.busy() < nearFull && s.runQueue+s.throttled+s.blocked < noticeable/2
}

// analysis is the observations with what follows from them.
type analysis struct {
	Observations
	stations  []station // of the servers, as in Observations
	server    station   // the busiest
	generator station
	threads   []station // of the generator
}

func analyse(o Observations) *analysis {
	c := &analysis{Observations: o}
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

// share turns times into shares. Time in the run queue counts as throttled as far as the cgroup was throttled.
func (c *analysis) share(t Thread, quotas []Quota) station {
	window := c.Window.Seconds()
	if window <= 0 {
		return station{}
	}
	s := station{run: min(1, t.CPU.Seconds()/window), runQueue: t.RunQueue.Seconds() / window}
	for _, q := range quotas {
		if q.ThrottledPeriods > 0 && q.ThrottledTime > s.quota.ThrottledTime {
			s.quota = q
		}
	}
	throttled := s.quota.ThrottledTime.Seconds() / window
	// A wait that has not ended is not in RunQueue yet (kernel/sched/stats.h). A throttled thread was on no CPU.
	s.throttled = min(throttled, max(s.runQueue, 1-s.run))
	s.runQueue = max(0, s.runQueue-s.throttled)
	s.runQueue = min(s.runQueue, max(0, 1-s.run-s.throttled))
	return s
}

func (c *analysis) serverStation(s Server) station {
	best := c.share(s.MainThread, s.Quotas)
	best.blocked = s.Blocked
	for _, t := range s.OtherThreads {
		// KeyDB, Dragonfly and HAProxy serve with several threads. I/O threads are judged by themselves (ioThreads),
		// and background threads hold up no call.
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
func (c *analysis) ioThreads() (mean float64, n int) {
	for _, t := range c.server.OtherThreads {
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

// oneHost: the server's process is on the generator's host.
func (c *analysis) oneHost() bool { return c.server.Visibility == VisibleOnHost }

// sharedCPUs are the CPUs on which both may run.
func (c *analysis) sharedCPUs() []int {
	var both []int
	for _, cpu := range c.generator.CPUs {
		if c.oneHost() && slices.Contains(c.server.CPUs, cpu) {
			both = append(both, cpu)
		}
	}
	return both
}

// busyCPUs is how many of these CPUs were busy, with anything.
func (c *analysis) busyCPUs(cpus []int) (cores float64) {
	for _, cpu := range cpus {
		cores += c.Machine[cpu].Busy + c.Machine[cpu].Steal
	}
	return cores
}

// usedCPUs is how many CPUs server and generator had on average.
func (c *analysis) usedCPUs() (server, generator float64) {
	if c.Window <= 0 {
		return 0, 0
	}
	for _, s := range c.Servers {
		if s.Visibility != VisibleOnHost {
			continue
		}
		server += s.MainThread.CPU.Seconds() / c.Window.Seconds()
		for _, t := range s.OtherThreads {
			server += t.CPU.Seconds() / c.Window.Seconds()
		}
	}
	for _, t := range c.Generator.Threads {
		generator += t.CPU.Seconds() / c.Window.Seconds()
	}
	return server, generator
}
