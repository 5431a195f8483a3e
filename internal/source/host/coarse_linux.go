package host

import (
	"context"
	"runtime"
	"time"
)

const (
	listenEvery  = 100 * time.Millisecond // a full accept queue lasts shortly
	smapsEvery   = 30 * time.Second
	slowEvery    = 10 * time.Second // settings that hardly ever change
	clientsEvery = 10 * time.Second
	// coarseShare bounds the CPU time of one expensive look: it comes again after its cost times this, but not later
	// than coarseMost or its own cadence.
	coarseShare = 1000
	coarseMost  = 5 * time.Second
	listenShare = 100 // as coarseShare, for the accept queue: without sock_diag whole tables are read for it
)

// paced is an expensive look, repeated every so often, and less often when it turned out to cost more than
// 1/coarseShare.
type paced struct {
	every time.Duration
	share int64 // coarseShare when 0
	next  int64
}

// run calls look when it is time.
func (p *paced) run(w *watch, look func()) {
	now := w.Clock.Now()
	if now < p.next {
		return
	}
	begin := threadCPU()
	look()
	share := p.share
	if share == 0 {
		share = coarseShare
	}
	pause := min((threadCPU()-begin)*share, int64(max(coarseMost, p.every)))
	// Some tolerance, so that it is not missed by a round that comes a little early.
	p.next = now + max(int64(p.every-min(p.every, w.CoarseEvery)/2), pause)
}

// coarse reads the counters until the context ends.
func (w *watch) coarse(ctx context.Context) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer w.bookCPU(threadCPU())
	w.begin()
	defer w.end()
	every := time.NewTicker(min(listenEvery, w.CoarseEvery))
	defer every.Stop()
	next := w.Clock.Now()
	for {
		w.listen.run(w, w.listenQueue)
		if now := w.Clock.Now(); now >= next {
			w.round()
			next = max(next+int64(w.CoarseEvery), now)
		}
		select {
		case <-ctx.Done():
			w.neighbours.next, w.sockets.next = 0, 0
			w.round() // once more at the end, for deltas over the whole watch
			return
		case <-every.C:
		}
	}
}

// begin writes what does not change and opens what stays open.
func (w *watch) begin() {
	w.openSockets()
	w.cgroupSnapshot()
	w.processSnapshot()
	w.neighbours.every = w.CoarseEvery
	w.sockets.every = w.CoarseEvery
	w.clients.every = clientsEvery
	w.listen = paced{every: listenEvery, share: listenShare}
	w.smaps.every, w.settings.every = smapsEvery, slowEvery
}

func (w *watch) end() {
	if w.table != nil {
		w.table.Close()
	}
}

func (w *watch) round() {
	w.followCgroup()
	w.mainThread()
	w.process()
	w.smaps.run(w, w.hugePages)
	w.threads()
	w.cgroupCPU(w.groups.cpu)
	w.cgroupMemory()
	w.cgroupIO()
	w.cgroupPressure()
	w.machine()
	w.settings.run(w, w.machineSettings)
	w.network()
	w.sockets.run(w, w.connections)
	w.neighbours.run(w, w.findNeighbours)
	w.clients.run(w, w.findClients)
	w.sampleClients()
}
