package host

import (
	"context"
	"runtime"
	"time"
)

const (
	smapsEvery   = 30 * time.Second
	slowEvery    = 10 * time.Second // settings that seldom change
	clientsEvery = 10 * time.Second
	// longestPause bounds how long an expensive read is put off.
	longestPause = 5 * time.Second
	listenShare  = 100 // as Options.CostShare, for the accept queue: without sock_diag whole tables are read for it
)

// paced is an expensive read, repeated every so often, and less often where it turned out to cost more than its share
// of a CPU.
type paced struct {
	every time.Duration
	share int64 // Options.CostShare when 0
	next  int64
}

// run calls read when it is time.
func (p *paced) run(w *watch, read func()) {
	now := w.Clock.Now()
	if now < p.next {
		return
	}
	begin := threadCPU()
	read()
	share := p.share
	if share == 0 {
		share = w.CostShare
	}
	longest := longestPause * time.Duration(max(1, w.CostShare/costShare))
	pause := min((threadCPU()-begin)*share, int64(max(longest, p.every)))
	// Some tolerance, so that a round that comes a little early does not miss it.
	p.next = now + max(int64(p.every-min(p.every, w.CountersEvery)/2), pause)*w.Pace.Times()
}

// watchCounters reads the counters until the context ends.
func (w *watch) watchCounters(ctx context.Context) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer w.addCPU(threadCPU())
	w.begin()
	defer w.end()
	every := min(w.ListenEvery, w.CountersEvery)
	next := w.Clock.Now()
	for {
		w.listen.run(w, w.listenQueue)
		w.sizes.follow(w.Clock.Now())
		if now := w.Clock.Now(); now >= next {
			w.round()
			next = max(next+int64(w.CountersEvery)*w.Pace.Times(), now)
		}
		timer := time.NewTimer(every * time.Duration(w.Pace.Times()))
		select {
		case <-ctx.Done():
			timer.Stop()
			w.neighbours.next, w.sockets.next, w.eachClient.next = 0, 0, 0
			w.round() // once more at the end, for deltas over the whole watch
			return
		case <-timer.C:
		}
	}
}

// begin records what does not change and opens what stays open.
func (w *watch) begin() {
	w.openSockets()
	w.cgroupSnapshot()
	w.processSnapshot()
	w.neighbours.every = w.CountersEvery
	w.sockets.every = w.CountersEvery
	w.clients.every, w.eachClient.every = clientsEvery, w.CountersEvery
	w.listen = paced{every: w.ListenEvery, share: listenShare * w.CostShare / costShare}
	w.smaps.every, w.settings.every = smapsEvery, slowEvery
}

func (w *watch) end() {
	for _, t := range w.tables {
		t.Close()
	}
}

func (w *watch) round() {
	w.followCgroup()
	w.mainThread()
	w.process()
	w.smaps.run(w, w.hugePages)
	w.threads()
	w.cgroupCPU(w.groups.cpu, true)
	w.cgroupMemory()
	w.cgroupIO()
	w.cgroupPressure()
	w.machine()
	w.settings.run(w, func() { w.machineSettings(); w.emitCost() }) // a part of the watch may be saved
	w.network()
	w.sockets.run(w, w.connections)
	w.neighbours.run(w, w.findNeighbours)
	w.clients.run(w, w.findClients)
	w.eachClient.run(w, w.sampleClients)
}
