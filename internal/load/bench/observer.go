//go:build linux

package bench

import (
	"context"
	"fmt"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/load/bottleneck"
	"slowpath/internal/load/engine"
	"slowpath/internal/load/monitor"
	"slowpath/internal/wire/target"
)

// observer reads what can limit a load while it runs.
type observer struct {
	monitor *monitor.Watch
	workers []bottleneck.Thread
	startAt time.Time
}

func newObserver(ctx context.Context, o Options) *observer {
	return &observer{
		monitor: monitor.Open(ctx, monitor.Options{
			Targets: []target.Target{o.Load.Target}, Cluster: o.Load.Cluster,
			Clock: o.Load.Clock, OwnThreads: o.Load.Pool > 0,
		}),
		workers: make([]bottleneck.Thread, workersOf(o.Load)), startAt: o.StartAt,
	}
}

// workersOf is how many threads the load has.
func workersOf(o engine.Options) int { return min(max(o.Threads, 1), o.Connections) }

// readingBefore is how long before a start barrier the first reading is taken: it needs some milliseconds.
const readingBefore = 50 * time.Millisecond

// begin is engine.Options.Begin: the first reading, and the start barrier where there is one.
func (b *observer) begin(ctx context.Context) error {
	if b.startAt.IsZero() {
		b.monitor.Start()
		return nil
	}
	alarm, err := clock.NewAlarm(ctx)
	if err != nil {
		return err
	}
	defer alarm.Close()
	if late := time.Since(b.startAt); late > 0 {
		return fmt.Errorf("%w: the connections were open at %s, %v after it; give a later time", ErrStartPassed,
			time.Now().UTC().Format(time.RFC3339Nano), late.Round(time.Millisecond))
	}
	if !alarm.Sleep(time.Until(b.startAt) - readingBefore) {
		return ctx.Err()
	}
	b.monitor.Start()
	if !alarm.Sleep(time.Until(b.startAt)) {
		return ctx.Err()
	}
	return nil
}

// add adds the CPU time of a worker.
func (b *observer) add(t *engine.Tally) {
	for len(b.workers) <= t.Worker {
		b.workers = append(b.workers, bottleneck.Thread{})
	}
	w := &b.workers[t.Worker]
	w.CPU += time.Duration(t.CPUNs)
	w.RunQueue += time.Duration(t.RunQueueNs)
}

// pool adds the pool that the callers share. They are goroutines: the monitor reads their threads.
func (b *observer) pool(s *summary, o *bottleneck.Observations) {
	if s.Load.Pool == 0 {
		return
	}
	o.Pool = &bottleneck.Pool{Size: s.Load.Pool, Callers: s.Load.Workers}
	if s.total.PoolWait != nil {
		o.Pool.Wait = time.Duration(s.total.PoolWait.Mean())
	}
}

// verdict says what limited the load, and adds to the result what it cost the servers.
func (b *observer) verdict(s *summary, r *Result) bottleneck.Verdict {
	o := bottleneck.Observations{
		Window:    time.Duration(s.ran.EndNs - s.ran.StartNs),
		Generator: bottleneck.Generator{Threads: b.workers, BusyPoll: s.Load.BusyPoll},
	}
	o.Load = bottleneck.Load{
		Open: s.Load.Open(), Calls: r.Requests - s.total.Drained, Unsent: s.ran.Unsent,
		InFlight:    s.ran.InFlight + s.total.Drained,
		Connections: s.Load.Connections, Pipeline: s.Load.Pipeline, Service: time.Duration(r.Service.MeanNs),
		ResponseP99: time.Duration(r.Latency.P99Ns),
	}
	if s.Load.PerCall && !s.Load.Open() { // a call is due when its connect begins
		o.Load.Service = time.Duration(r.Latency.MeanNs)
		o.Load.Connecting = max(0, time.Duration(r.Latency.MeanNs-r.Service.MeanNs))
	}
	if r.Schedule != nil {
		o.Load.AskedPerSecond, o.Load.LateP99 = r.Schedule.PerSecond, time.Duration(r.Schedule.LateP99Ns)
	}
	if s.total.SpunNs > 0 {
		o.Generator.Spinning = min(1, float64(s.total.SpunNs)/float64(max(s.total.CPUNs, 1)))
	}
	b.monitor.Observe(s.ran.StartNs, s.ran.EndNs, &o)
	b.pool(s, &o)
	o.Network.BytesPerSec = float64(max(r.Bytes.Out, r.Bytes.In)) / max(r.Seconds, 1e-9)
	for _, n := range o.Servers {
		r.Servers = append(r.Servers, Server{
			Address: n.Address, Process: n.Process, Proxy: n.Proxy, CPUFrom: string(n.Visibility), CPUNs: int64(n.CPU),
		})
	}
	return bottleneck.Of(o)
}
