package source

import (
	"context"
	"errors"
	"time"

	"slowpath/internal/recording"
	"slowpath/internal/source/host"
)

// locateEvery is how often the process of a server that has ended is looked for. That takes some milliseconds where
// this host has hundreds of processes.
const locateEvery = 500 * time.Millisecond

// watchHost runs the host source of a node until ctx ends. A restarted server is another process: it is watched as soon
// as it listens at the address of the one before. Behind a proxy it is another one that listens there.
func (r *run) watchHost(ctx context.Context, n node) error {
	for p := *n.process; ; {
		o := host.Options{FS: r.FS, Clock: r.Clock, Sink: r.sink, Node: n.address, Process: p, Port: p.Port}
		if r.Sparing {
			r.spare(&o)
		}
		err := host.Watch(ctx, o)
		if !errors.Is(err, host.ErrGone) || ctx.Err() != nil {
			return err
		}
		r.processEvent(n, recording.KindProcessEnded, p)
		if n.behindProxy() {
			return nil
		}
		next, ok := r.awaitProcess(ctx, n, p.PID)
		if !ok {
			return nil // nothing to watch any more, which is no error of this source
		}
		r.processEvent(n, recording.KindProcessFound, next)
		if r.kernel != nil {
			r.kernel.Restarted(n.address, next.PID)
		}
		r.followCPU(n, p.PID, next.PID)
		p = next
	}
}

// How often a sparing watch reads what another one reads more often. Each wake-up takes 20 to 70 µs of a virtual CPU.
const (
	sparingThread    = 20 * time.Millisecond  // the main thread,
	sparingWithTap   = 200 * time.Millisecond // and where the tap sees each of its waits
	sparingListen    = time.Second            // the accept queue
	sparingCounters  = 2 * time.Second        // counters of the host, the cgroup and the processes,
	sparingDrain     = 100 * time.Millisecond // what the tap saw,
	sparingReports   = 4 << 20                // bytes of it meanwhile,
	sparingWork      = 5                      // waits and work of a fifth of a slow call or more,
	sparingCallers   = 5 * time.Second        // the waits of callers,
	sparingCostShare = 5000                   // one part of a core for each of sockets, neighbours and clients,
	sparingThreads   = 7                      // seven times that for the threads of callers
)

// spare has the host be read less often.
func (r *run) spare(o *host.Options) {
	o.ThreadEvery, o.ListenEvery, o.CountersEvery = sparingThread, sparingListen, sparingCounters
	o.CostShare, o.Pace = sparingCostShare, r.Pace
	if r.kernel != nil {
		o.ThreadEvery = sparingWithTap
	}
}

// awaitProcess waits for another process that listens at the address of a node; ok is false where ctx ended before.
func (r *run) awaitProcess(ctx context.Context, n node, before int) (p host.Process, ok bool) {
	tick := time.NewTicker(locateEvery)
	defer tick.Stop()
	q := host.Query{Network: n.target.Network, Listen: listenAddress(n.target), UnixPath: n.target.Path}
	for {
		p, err := host.Locate(r.FS, q)
		if err == nil && p.PID != before && !p.Foreign {
			return p, true
		}
		select {
		case <-ctx.Done():
			return p, false
		case <-tick.C:
		}
	}
}

func (r *run) processEvent(n node, kind string, p host.Process) {
	r.sink.Event(recording.Event{
		TimeNs: r.Clock.Now(), Source: recording.SourceHost, Subject: n.address, Kind: kind,
		Detail: recording.Detail(recording.ServerProcess{PID: p.PID, Comm: p.Comm}),
	})
}
