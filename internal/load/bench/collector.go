package bench

import (
	"cmp"
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/load/engine"
)

// collector adds up the workers' tallies, per second and in total. It is for one goroutine.
type collector struct {
	ops       int
	bothTimes bool // latencies also count from the intended time
	workers   int
	onSecond  func(Second, *engine.Tally) // each second once, in order; the tally is valid until it returns

	total      *engine.Tally
	open       map[int]*second // by second: not all workers have reported them
	lastSecond map[int]int     // by worker: the last second that it reported
	closed     int             // seconds that are complete
	series     []Second
	free       []*engine.Tally
}

// second is one second of all workers.
type second struct {
	tally     *engine.Tally
	inFlight  int64
	connected int
	endNs     int64 // of sending in it, from the start of the load
}

func newCollector(ops int, two bool, workers int) *collector {
	return &collector{
		ops: ops, bothTimes: two, workers: workers, onSecond: func(Second, *engine.Tally) {},
		total: engine.NewTally(ops, two), open: map[int]*second{}, lastSecond: map[int]int{},
	}
}

// add takes what a worker counted.
func (c *collector) add(t *engine.Tally) {
	if t.Second < c.closed { // reported too late: it counts in the total only
		c.total.Add(t)
		return
	}
	s := c.open[t.Second]
	if s == nil {
		s = &second{tally: c.empty()}
		c.open[t.Second] = s
	}
	s.tally.Add(t)
	s.inFlight += t.InFlight
	s.connected += t.Connected
	s.endNs = max(s.endNs, t.EndNs)
	c.lastSecond[t.Worker] = t.Second
	if t.Last {
		c.lastSecond[t.Worker] = math.MaxInt
	}
	c.closeSeconds()
}

// closeSeconds closes the seconds that all workers have reported. A worker that got no CPU for long skips seconds: they
// are empty.
func (c *collector) closeSeconds() {
	if len(c.lastSecond) < c.workers {
		return
	}
	last := math.MaxInt
	for _, n := range c.lastSecond {
		last = min(last, n)
	}
	for len(c.open) > 0 && c.closed <= last {
		s := c.open[c.closed]
		if s == nil {
			s = &second{tally: c.empty()}
		}
		delete(c.open, c.closed)
		c.finish(s)
	}
}

// finish adds a second to the total.
func (c *collector) finish(s *second) {
	row := rowOf(c.closed, s)
	c.series = append(c.series, row)
	c.closed++
	c.onSecond(row, s.tally)
	c.total.Add(s.tally)
	s.tally.Reset()
	c.free = append(c.free, s.tally)
}

func (c *collector) empty() *engine.Tally {
	if n := len(c.free); n > 0 {
		t := c.free[n-1]
		c.free = c.free[:n-1]
		return t
	}
	return engine.NewTally(c.ops, c.bothTimes)
}

// rowOf gives the numbers of a second.
func rowOf(n int, s *second) Second {
	t := s.tally
	r := Second{
		Second: n, Seconds: 1, Requests: t.Calls() - t.Drained, InFlight: s.inFlight, Connected: s.connected,
		Reconnected: t.Reconnected,
		BytesOut:    t.BytesOut, BytesIn: t.BytesIn, WorkersCPUNs: t.CPUNs, WorkersRunQueueNs: t.RunQueueNs,
	}
	if rest := s.endNs - int64(n)*1e9; rest > 0 && rest < 1e9 {
		r.Seconds = float64(rest) / 1e9
	}
	for _, kinds := range []map[string]int64{t.Errors, t.ConnErrors} {
		for _, k := range kinds {
			r.Errors += k
		}
	}
	for _, k := range t.Retried {
		r.Retried += k
	}
	for _, o := range t.Ops {
		r.Misses += o.Misses
	}
	latency, service := Histograms(t)
	q := latency.ValueAtPercentiles([]float64{50, 99, 99.9})
	r.P50Ns, r.P99Ns, r.P999Ns, r.MaxNs = q[50], q[99], q[99.9], latency.Max()
	q = service.ValueAtPercentiles([]float64{50, 99})
	r.ServiceP50Ns, r.ServiceP99Ns, r.ServiceMaxNs = q[50], q[99], service.Max()
	if t.Late != nil {
		r.LateP99Ns = t.Late.ValueAtQuantile(99)
	}
	return r
}

// Histograms adds up the ops of a tally, with the calls that have no reply: latency from the intended time, service
// from the send. With a single op they are the tally's own: do not change them.
func Histograms(t *engine.Tally) (latency, service *hdrhistogram.Histogram) {
	if len(t.Ops) == 1 && t.AgeFromSend == nil && t.AgeFromIntended == nil {
		one := t.Ops[0]
		return cmp.Or(one.Response, one.Service), one.Service
	}
	service = engine.NewHistogram()
	latency = service
	if t.Late != nil {
		latency = engine.NewHistogram()
	}
	for _, o := range t.Ops {
		service.Merge(o.Service)
		if o.Response != nil {
			latency.Merge(o.Response)
		}
	}
	if t.AgeFromSend != nil {
		service.Merge(t.AgeFromSend)
	}
	if t.AgeFromIntended != nil {
		latency.Merge(t.AgeFromIntended)
	}
	return latency, service
}
