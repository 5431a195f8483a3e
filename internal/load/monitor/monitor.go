//go:build linux

// Package monitor watches the two ends of a load and the way between while it runs: the CPU time of the servers'
// threads and their quota, that of the generator's host, the sockets and the link. What it sees goes into
// limit.Observations; it judges nothing.
//
// A server whose process is on this host is read from its files; any other is asked by INFO, twice a second.
package monitor

import (
	"cmp"
	"context"
	"os"
	"sync"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/load/bottleneck"
	"slowpath/internal/source/host"
	"slowpath/internal/wire/target"
)

// Options of a watch.
type Options struct {
	Targets []target.Target // the first node, or several; the other nodes of a cluster are found
	Clock   *clock.Real
	FS      host.FS // this host when nil
	// OwnThreads reads the threads of this process, too: for a load that is made by goroutines, of which no thread is
	// told by itself.
	OwnThreads bool
	// PID is the process that makes the load, where it is another one of this host; its threads are read.
	PID int
	// AtOnce is how many threads of the load's process compute at once; 0: as many as there are CPUs.
	AtOnce int
}

// Cadences. A reading of a server on this host takes some 100 µs, one by INFO some 50 µs of the server.
const (
	every    = 200 * time.Millisecond
	askEvery = 500 * time.Millisecond
	// Of a longer load a reading may be further from the end of sending, and still at the same part of the whole: a
	// 40th at most.
	partOfAll = 20
	mostApart = time.Second
	// The first looks at the sockets come soon, for short loads; then rarely, since the kernel walks its whole table
	// for each.
	socketEvery = time.Second / 2
	socketMost  = 8 * time.Second
	askTimeout  = 2 * time.Second
	findTimeout = 4 * time.Second
	maxNodes    = 64
	// keptReadings are those from which the one nearest to the end of sending is taken: what was in flight then may
	// take long to come back.
	keptReadings = 16
)

// Watch is a watch under way.
type Watch struct {
	Options
	nodes   []*node
	own     *host.Meter // of the process that makes the load, for its quota
	sockets *sockets
	link    link
	remote  bool

	machine series[map[int]host.CPUTimes]
	quotas  series[[]host.QuotaUsage]
	threads series[threadTimes]
	cpus    []int
	stop    chan struct{}
	stopped sync.WaitGroup
	once    sync.Once
}

// Find connects to the servers once and finds their processes where they are on this host. Servers that cannot be
// reached or seen are no error: why they were not seen is in what Seen gives.
func Find(ctx context.Context, o Options) *Watch {
	if o.FS == nil {
		o.FS = host.Root{}
	}
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	w := &Watch{Options: o, stop: make(chan struct{})}
	seen := map[string]bool{}
	for i := 0; i < len(o.Targets) && len(w.nodes) < maxNodes; i++ {
		t := o.Targets[i]
		if seen[t.Addr()] {
			continue
		}
		seen[t.Addr()] = true
		n, peers := find(ctx, o.FS, t)
		w.nodes = append(w.nodes, n...)
		for _, addr := range peers {
			o.Targets = append(o.Targets, t.WithAddr(addr))
		}
	}
	w.own, _ = host.NewMeter(o.FS, cmp.Or(o.PID, os.Getpid())) // without /proc nothing of this is seen
	w.link, w.remote = linkOf(o.FS, w.nodes)
	w.sockets = openSockets(o.FS, w.nodes)
	return w
}

// Know tells which descriptors of this process are the load's connections. It is for before Begin; without it they are
// looked for in the tables of the kernel, which takes milliseconds on a host with many sockets.
func (w *Watch) Know(connections []int) { w.sockets.know(endsOf(connections)) }

// Begin takes the first reading and goes on until End.
func (w *Watch) Begin() {
	w.readAll()
	var seen []*node
	for _, n := range w.nodes {
		if n.meter != nil {
			seen = append(seen, n)
		} else { // each by itself: one that answers late does not hold up the others
			w.repeat(askEvery, func() { n.read(w.Clock) })
		}
	}
	w.repeat(every, func() {
		for _, n := range seen {
			n.read(w.Clock)
		}
		w.read(false)
	})
}

// repeat looks at first every so often, and the longer the load lasts the more rarely.
func (w *Watch) repeat(every time.Duration, look func()) {
	began := time.Now()
	w.stopped.Go(func() {
		next := time.NewTimer(every)
		defer next.Stop()
		for {
			select {
			case <-w.stop:
				return
			case <-next.C:
				look()
				next.Reset(min(max(every, time.Since(began)/partOfAll), mostApart))
			}
		}
	})
}

// End takes the last reading and lets everything go.
func (w *Watch) End() {
	w.once.Do(func() {
		close(w.stop)
		w.stopped.Wait()
		w.readAll()
		for _, n := range w.nodes {
			n.close()
		}
		w.sockets.close()
	})
}

// readAll takes a reading of everything.
func (w *Watch) readAll() {
	var all sync.WaitGroup
	for _, n := range w.nodes {
		all.Go(func() { n.read(w.Clock) })
	}
	w.read(true)
	all.Wait()
}

// read takes a reading of the generator's host and of the way; with all, of what is not due as well.
func (w *Watch) read(all bool) {
	if m, err := host.ReadCPUs(w.FS); err == nil {
		w.machine.add(w.Clock.Now(), m)
	}
	if w.own != nil {
		w.quotas.add(w.Clock.Now(), w.own.Quotas())
		w.readThreads()
		if cpus := w.own.CPUs(); all && len(cpus) > 0 { // none of a process that has ended
			w.cpus = cpus
		}
	}
	w.sockets.read(w.Clock.Now(), all)
	w.link.read(w.Clock.Now())
}

// Seen adds what was seen from startNs to endNs, by the clock of Options, to the observations of a load. It is for
// after End.
func (w *Watch) Seen(startNs, endNs int64, o *bottleneck.Observations) {
	window := time.Duration(endNs - startNs)
	for _, n := range w.nodes {
		s := n.seen(endNs, window)
		s.Queued = w.sockets.repliesQueued(n)
		o.Servers = append(o.Servers, s)
	}
	o.Generator.CPUs = w.cpus
	if from, to, scale, ok := w.quotas.span(endNs, window); ok {
		o.Generator.Quotas = quotas(from, to, scale)
	}
	w.threadsSeen(endNs, window, &o.Generator)
	if from, to, _, ok := w.machine.span(endNs, window); ok {
		o.Machine = machine(from, to, w.machine.length(endNs))
	}
	o.Network = w.sockets.network(endNs, window)
	o.Network.Remote = w.remote
	w.link.seen(endNs, window, &o.Network)
}

func machine(from, to map[int]host.CPUTimes, span time.Duration) map[int]bottleneck.CPU {
	out := map[int]bottleneck.CPU{}
	for cpu, t := range to {
		f := from[cpu]
		out[cpu] = bottleneck.CPU{
			Busy:  min(1, (t.Busy-f.Busy).Seconds()/span.Seconds()),
			Steal: min(1, (t.Steal-f.Steal).Seconds()/span.Seconds()),
		}
	}
	return out
}

// quotas are those that were there at both ends.
func quotas(from, to []host.QuotaUsage, scale float64) []bottleneck.Quota {
	var out []bottleneck.Quota
	for _, t := range to {
		for _, f := range from {
			if f.Cgroup == t.Cgroup {
				out = append(out, bottleneck.Quota{
					Cgroup: t.Cgroup, Cores: t.Cores, Periods: t.Periods - f.Periods,
					Throttled: t.Throttled - f.Throttled,
					Held:      scaled(t.Held-f.Held, scale),
				})
			}
		}
	}
	return out
}

func scaled(d time.Duration, scale float64) time.Duration { return time.Duration(float64(d) * scale) }

// series is the first reading and the last ones.
type series[T any] struct {
	first  reading[T]
	recent []reading[T]
}

type reading[T any] struct {
	at    int64
	value T
}

func (s *series[T]) add(at int64, v T) {
	r := reading[T]{at, v}
	if s.first.at == 0 {
		s.first = r
		return
	}
	if len(s.recent) == keptReadings {
		s.recent = append(s.recent[:0], s.recent[1:]...)
	}
	s.recent = append(s.recent, r)
}

// nearest is the reading nearest to the end of sending.
func (s *series[T]) nearest(endNs int64) (best reading[T], ok bool) {
	for i, r := range s.recent {
		if i == 0 || max(r.at-endNs, endNs-r.at) < max(best.at-endNs, endNs-best.at) {
			best = r
		}
	}
	return best, best.at > s.first.at
}

// span gives the readings at both ends of the window, and what to multiply their differences by where they are not
// exactly as far apart.
func (s *series[T]) span(endNs int64, window time.Duration) (from, to T, scale float64, ok bool) {
	last, ok := s.nearest(endNs)
	if !ok {
		return from, to, 0, false
	}
	return s.first.value, last.value, window.Seconds() / time.Duration(last.at-s.first.at).Seconds(), true
}

func (s *series[T]) length(endNs int64) time.Duration {
	last, _ := s.nearest(endNs)
	return time.Duration(last.at - s.first.at)
}
