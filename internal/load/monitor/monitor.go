//go:build linux

// Package monitor reads, while a load runs, what can limit it: the CPU time and the quota of the servers' threads and
// of the generator, the CPUs of its host, the sockets and the link. The readings go into bottleneck.Observations;
// nothing is judged here.
//
// A server whose process is on this host is read from /proc; any other is asked by INFO, twice a second.
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
	Targets []target.Target // one node or several; the other nodes of a cluster are found
	Cluster bool            // the password is for every node that a target names, wherever that is
	Clock   *clock.Real
	FS      host.FS // this host when nil
	// OwnThreads also reads the threads of this process: for a load made by goroutines, which have no thread of their
	// own.
	OwnThreads bool
	// PID is the process that makes the load, where it is another one on this host; its threads are read.
	PID int
	// Parallelism is how many threads of the load's process run at once; 0: as many as there are CPUs.
	Parallelism int
}

// Cadences. A reading of a server on this host takes some 100 µs, one by INFO some 50 µs of the server.
const (
	hostEvery = 200 * time.Millisecond
	infoEvery = 500 * time.Millisecond
	// Readings of a long load are further apart: a 20th of its time so far, so that the one nearest to the end of
	// sending is off by a 40th of the whole at most.
	readingsOfWhole = 20
	maxEvery        = time.Second
	// Sockets are first polled soon, for short loads; then rarely, since the kernel walks its whole table for each
	// poll.
	socketEvery    = time.Second / 2
	maxSocketEvery = 8 * time.Second
	infoTimeout    = 2 * time.Second
	openTimeout    = 4 * time.Second
	maxNodes       = 64
	// keptReadings are the last ones, from which the one nearest to the end of sending is taken: replies to the calls
	// in flight at that time may take long.
	keptReadings = 16
)

// Watch is the readings of one load.
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

// Open connects to the servers once, and finds their processes where they are on this host. Servers that cannot be
// reached or read are no error: Observe says why.
func Open(ctx context.Context, o Options) *Watch {
	if o.FS == nil {
		o.FS = host.Root{}
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	w := &Watch{Options: o, stop: make(chan struct{})}
	seen := map[string]bool{}
	for i := 0; i < len(o.Targets) && len(w.nodes) < maxNodes; i++ {
		t := o.Targets[i]
		if seen[t.Addr()] {
			continue
		}
		seen[t.Addr()] = true
		n, peers := openNode(ctx, o.FS, t)
		w.nodes = append(w.nodes, n...)
		for _, addr := range peers {
			if peer := t.WithAddr(addr); o.Cluster || t.MayLogIn(n[0].remoteAddr, peer) {
				o.Targets = append(o.Targets, peer)
			}
		}
	}
	w.own, _ = host.NewMeter(o.FS, cmp.Or(o.PID, os.Getpid())) // without /proc nothing of it is read
	w.link, w.remote = linkOf(o.FS, w.nodes)
	w.sockets = openSockets(o.FS, w.nodes)
	return w
}

// SetConnections says which descriptors of this process are the load's connections, before Start. Without it they are
// searched in the tables of the kernel, which takes milliseconds on a host with many sockets.
func (w *Watch) SetConnections(connections []int) { w.sockets.setConnections(endsOf(connections)) }

// Start takes the first reading, and further ones until Stop.
func (w *Watch) Start() {
	w.readAll()
	var local []*node
	for _, n := range w.nodes {
		if n.meter != nil {
			local = append(local, n)
		} else { // each by itself: one that answers late must not delay the others
			w.repeat(infoEvery, func() { n.read(w.Clock) })
		}
	}
	w.repeat(hostEvery, func() {
		for _, n := range local {
			n.read(w.Clock)
		}
		w.read(false)
	})
}

// repeat calls read every so often, and the longer the load lasts the more rarely.
func (w *Watch) repeat(every time.Duration, read func()) {
	began := time.Now()
	w.stopped.Go(func() {
		next := time.NewTimer(every)
		defer next.Stop()
		for {
			select {
			case <-w.stop:
				return
			case <-next.C:
				read()
				next.Reset(min(max(every, time.Since(began)/readingsOfWhole), maxEvery))
			}
		}
	})
}

// Stop takes the last reading and closes everything.
func (w *Watch) Stop() {
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

// readAll reads everything.
func (w *Watch) readAll() {
	var all sync.WaitGroup
	for _, n := range w.nodes {
		all.Go(func() { n.read(w.Clock) })
	}
	w.read(true)
	all.Wait()
}

// read reads the generator's host, the sockets and the link; with all, also what is not due.
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

// Observe adds what was read from startNs to endNs, by the clock of Options, to the observations of a load. It is
// called after Stop.
func (w *Watch) Observe(startNs, endNs int64, o *bottleneck.Observations) {
	window := time.Duration(endNs - startNs)
	for _, n := range w.nodes {
		s := n.observe(endNs, window)
		s.RepliesQueued = w.sockets.repliesQueued(n)
		o.Servers = append(o.Servers, s)
	}
	o.Generator.CPUs = w.cpus
	if from, to, scale, ok := w.quotas.span(endNs, window); ok {
		o.Generator.Quotas = quotas(from, to, scale)
	}
	w.observeThreads(endNs, window, &o.Generator)
	if from, to, _, ok := w.machine.span(endNs, window); ok {
		o.Machine = machine(from, to, w.machine.length(endNs))
	}
	o.Network = w.sockets.network(endNs, window)
	o.Network.Remote = w.remote
	w.link.observe(endNs, window, &o.Network)
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

// quotas are those that both readings have.
func quotas(from, to []host.QuotaUsage, scale float64) []bottleneck.Quota {
	var out []bottleneck.Quota
	for _, t := range to {
		for _, f := range from {
			if f.Cgroup == t.Cgroup {
				out = append(out, bottleneck.Quota{
					Cgroup: t.Cgroup, Cores: t.Cores, Periods: t.Periods - f.Periods,
					ThrottledPeriods: t.Throttled - f.Throttled,
					ThrottledTime:    scaled(t.Held-f.Held, scale),
				})
			}
		}
	}
	return out
}

func scaled(d time.Duration, scale float64) time.Duration { return time.Duration(float64(d) * scale) }

// series is the first reading and the last keptReadings ones.
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

// span gives the readings at both ends of the window, and the factor that scales their difference to its length.
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
