package bench

import (
	"cmp"
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/load/engine"
)

// collector adds up the workers' tallies, per second and in all. It is for one goroutine.
type collector struct {
	ops      int
	two      bool // latencies count from the intended time, too
	workers  int
	onSecond func(Second, *engine.Tally) // each second once, in order; the tally is valid until it returns

	total  *engine.Tally
	under  map[int]*second // way, by second: not all workers have told of them
	heard  map[int]int     // by worker: the last second that it told of
	closed int             // seconds that have been added up
	series []Second
	free   []*engine.Tally
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
		ops: ops, two: two, workers: workers, onSecond: func(Second, *engine.Tally) {},
		total: engine.NewTally(ops, two), under: map[int]*second{}, heard: map[int]int{},
	}
}

// add takes what a worker counted.
func (c *collector) add(t *engine.Tally) {
	if t.Second < c.closed { // told of too late: it is in the figures of the whole only
		c.total.Add(t)
		return
	}
	s := c.under[t.Second]
	if s == nil {
		s = &second{tally: c.empty()}
		c.under[t.Second] = s
	}
	s.tally.Add(t)
	s.inFlight += t.InFlight
	s.connected += t.Connected
	s.endNs = max(s.endNs, t.EndNs)
	c.heard[t.Worker] = t.Second
	if t.Last {
		c.heard[t.Worker] = math.MaxInt
	}
	c.close()
}

// close adds up the seconds of which all workers have told. A worker that could not run for long leaves seconds out:
// they are empty.
func (c *collector) close() {
	if len(c.heard) < c.workers {
		return
	}
	last := math.MaxInt
	for _, n := range c.heard {
		last = min(last, n)
	}
	for len(c.under) > 0 && c.closed <= last {
		s := c.under[c.closed]
		if s == nil {
			s = &second{tally: c.empty()}
		}
		delete(c.under, c.closed)
		c.finish(s)
	}
}

// finish adds a second to the whole.
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
	return engine.NewTally(c.ops, c.two)
}

// rowOf gives the figures of a second.
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
	for _, k := range t.Again {
		r.SentAgain += k
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

// Histograms adds up the ops of a tally: from the intended time, and from the send, with the calls that have no reply.
// Those of one op are the tally's own where they are all there is: they are to be read only.
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
