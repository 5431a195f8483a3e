//go:build linux

package matrix

import (
	"context"
	"errors"
	"fmt"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/step"
	"slowpath/internal/load/bottleneck"
	"slowpath/internal/load/monitor"
	"slowpath/internal/wire/target"
)

// measure lets the client make its calls, and fills the cell's figures in. A client of which no call succeeded is
// errSilent.
func (p *pair) measure(ctx context.Context) error {
	load := p.workers
	if p.settings.HTTP {
		load = p.service
	}
	step.Say(ctx, "making calls for %v", p.settings.Warmup+p.settings.Duration)
	sum, watch, err := load(ctx)
	if err != nil {
		return err
	}
	c := p.cell
	c.Library, c.Calls = sum.Library, sum.Calls
	c.Errors, c.ErrorKinds, c.LastError = sum.Errors, sum.ErrorKinds, sum.LastError
	if sum.Calls == 0 {
		return fmt.Errorf("%w: none ended within %v", errSilent, sum.Ran.Round(time.Millisecond))
	}
	if sum.Calls == sum.Errors {
		return fmt.Errorf("%w: %d failed: %s", errSilent, sum.Errors, sum.LastError)
	}
	c.RequestsPerSecond = sum.PerSecondMean()
	c.MeanNs = int64(mean(sum))
	c.P50Ns, c.P99Ns, c.MaxNs = int64(sum.Histogram.Quantile(0.5)), int64(sum.Histogram.Quantile(0.99)), int64(sum.Max)
	if watch != nil {
		c.LimitedBy = watch.limitedBy(sum, p.observations(sum))
	}
	return nil
}

// workers lets the client's own workers make the calls.
func (p *pair) workers(ctx context.Context) (clients.Summary, *observer, error) {
	o := p.options
	o.Duration = p.settings.Duration
	run, err := p.program.Start(p.dir, o)
	if err != nil {
		return clients.Summary{}, nil, err
	}
	var watch *observer
	if ready(ctx, run) == nil { // else it has no reply, and ends by itself
		begin := time.Now().Add(o.Warmup)
		watch = observe(ctx, p, run, begin)
		if p.pool != nil {
			p.pool.follow(ctx, run, begin, o.Duration)
		}
	}
	wait(ctx, run, o.Warmup+o.Duration+endWithin)
	if watch != nil {
		watch.Stop()
	}
	sum, err := run.End(endWithin)
	return sum, watch, err
}

// service makes the calls through the client's HTTP service. They count as its users see them; the library is what the
// service says.
func (p *pair) service(ctx context.Context) (clients.Summary, *observer, error) {
	run, err := p.program.Start(p.dir, p.options)
	if err != nil {
		return clients.Summary{}, nil, err
	}
	var sum clients.Summary
	var watch *observer
	if err = ready(ctx, run); err == nil {
		// Beside the warm-up of the requests, so that both begin at about the same time.
		begun := make(chan *observer, 1)
		go func() { begun <- observe(ctx, p, run, time.Now().Add(p.settings.Warmup)) }()
		sum, err = p.requests(p.settings.Duration).Make(ctx, run.Addr())
		if watch = <-begun; watch != nil {
			watch.Stop()
		}
	}
	own, endErr := run.End(endWithin)
	sum.Library = own.Library
	return sum, watch, errors.Join(err, endErr)
}

func (p *pair) requests(d time.Duration) clients.Requests {
	return clients.Requests{Connections: p.settings.Workers, Warmup: p.settings.Warmup, Duration: d}
}

// observer watches both ends of a cell's calls.
type observer struct {
	*monitor.Watch
	clock *clock.Real
	start int64
}

// observe watches a client that makes calls, from begin on, the end of its warm-up. The servers are found before, which
// takes a while and a connection to each. It is nil where the servers have no addresses that can be read, and where the
// client ended earlier.
func observe(ctx context.Context, p *pair, run *clients.Process, begin time.Time) *observer {
	var targets []target.Target
	for _, addr := range p.addrs {
		t, err := target.Parse(addr)
		if err != nil {
			return nil
		}
		targets = append(targets, t)
	}
	b := &observer{clock: clock.New()}
	b.Watch = monitor.Open(ctx, monitor.Options{
		Targets: targets, Clock: b.clock, PID: run.PID,
		Parallelism: atOnce[p.about.Language],
	})
	if !wait(ctx, run, time.Until(begin)) {
		b.Stop()
		return nil
	}
	b.Start()
	b.start = b.clock.Now()
	return b
}

// atOnce is how many threads of a program compute at once, where that is fewer than the CPUs: Python has one lock for
// all (the GIL), and JavaScript one event loop.
var atOnce = map[string]int{"Python": 1, "JavaScript": 1}

// observations are the load as its client saw it.
func (p *pair) observations(sum clients.Summary) bottleneck.Observations {
	o := bottleneck.Observations{Window: sum.Ran, Load: bottleneck.Load{
		Calls: sum.Calls, Connections: p.settings.Workers,
		Pipeline: 1, Service: mean(sum),
	}}
	if q := p.pool; q != nil {
		o.Load.Connections = p.options.Workers
		if q.connections > 0 {
			o.Load.Connections = min(q.connections, p.options.Workers)
		}
		wait := waits(o.Load.Service, p.options.Workers, q.connections)
		o.Load.Service -= wait
		if !p.options.OwnConnections {
			o.Pool = &bottleneck.Pool{Size: p.options.PoolSize, Callers: p.options.Workers, Wait: wait}
		}
	}
	return o
}

// limitedBy names what kept the calls from being more. The sentence of the verdict is for users of bench.
func (b *observer) limitedBy(sum clients.Summary, o bottleneck.Observations) string {
	b.Observe(b.start, b.start+int64(sum.Ran), &o)
	if by := bottleneck.Of(o).By; by != bottleneck.ByGeneratorCPU {
		return by
	}
	return ByClientCPU
}

// mean is that of the histogram's buckets, at most 0.8 % too small.
func mean(sum clients.Summary) time.Duration {
	if sum.Calls == 0 {
		return 0
	}
	var all float64
	for _, b := range sum.Histogram {
		all += float64(b[0]) * float64(b[1])
	}
	return time.Duration(all / float64(sum.Calls))
}
