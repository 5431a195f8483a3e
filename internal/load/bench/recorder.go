//go:build linux

package bench

import (
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/load/engine"
	"slowpath/internal/recording"
)

// Bounds of what a load writes one by one into a recording.
const (
	slowPerSecond  = 200 // groups of calls that were slow; beyond, only slower ones are told
	sampleEvery    = 100 * time.Millisecond
	rowsWaiting    = 4096
	kindsPerSecond = 20 // of errors
)

// Recorder writes a load into a recording, as source load: the latencies of every second and op, calls that were slow
// and a sample of the others, and errors.
type Recorder struct {
	sink    recording.Sink
	node    string
	ops     []string
	open    bool
	slow    int64 // ns; from here on a call is slow
	startNs int64

	cpuNs, runQueueNs int64 // of the workers so far

	from     atomic.Int64 // load.Options.SlowFrom
	usual    atomic.Int64 // what from is between samples
	told     atomic.Int64 // groups in the running second
	rows     chan engine.Slow
	stop     chan struct{}
	ended    chan struct{}
	finished atomic.Bool
}

// NewRecorder records the load of o against a node; calls are slow from slow on. It sets the hooks of o.Load; OnStart
// and OnSecond are the caller's to call, and Close when the load has ended.
func NewRecorder(o *Options, sink recording.Sink, slow time.Duration) *Recorder {
	r := &Recorder{
		sink: sink, node: o.Target.Address, open: o.Load.Open(), slow: int64(slow),
		rows: make(chan engine.Slow, rowsWaiting),
		stop: make(chan struct{}), ended: make(chan struct{}),
	}
	for _, op := range o.Load.Ops() {
		r.ops = append(r.ops, op.Name)
	}
	r.usual.Store(r.slow)
	r.from.Store(r.slow)
	o.Load.SlowFrom, o.Load.OnSlow = &r.from, r.onSlow
	sink.SetMeta(recording.MetaSource+recording.SourceLoad,
		recording.Detail(recording.SourceStatus{Name: recording.SourceLoad, Used: true}))
	go r.write()
	return r
}

// Start is told when the load begins, in ns of its clock.
func (r *Recorder) Start(ns int64) { r.startNs = ns }

// onSlow runs on a worker's thread.
func (r *Recorder) onSlow(s engine.Slow) {
	if usual := r.usual.Load(); r.from.Load() == 0 && !r.from.CompareAndSwap(0, usual) && s.EndNs-s.IntendedNs < usual {
		return // another worker gave the sample
	}
	if r.told.Add(1)%slowPerSecond == 0 {
		r.usual.Store(2 * max(r.usual.Load(), r.slow))
		r.from.Store(r.usual.Load())
	}
	select {
	case r.rows <- s:
	default:
	}
}

// write turns what the workers tell into rows, and asks for samples.
func (r *Recorder) write() {
	defer close(r.ended)
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		select {
		case s := <-r.rows:
			r.row(s)
		case <-tick.C:
			r.from.Store(0)
		case <-r.stop:
			for len(r.rows) > 0 {
				r.row(<-r.rows)
			}
			return
		}
	}
}

func (r *Recorder) row(s engine.Slow) {
	c := recording.Call{
		Source: recording.SourceLoad, Conn: recording.ConnLoad, Op: r.ops[s.Op],
		IntendedNs: s.IntendedNs, StartNs: s.SentNs, EndNs: s.EndNs, Node: r.node, Slot: -1,
	}
	if s.Unanswered {
		c.Error = recording.LoadUnanswered
	}
	r.sink.Call(c)
}

// Second writes a second of the load, and adapts what the next one tells one by one.
func (r *Recorder) Second(s Second, t *engine.Tally) {
	at := r.startNs + int64(s.Second)*1e9
	for i, op := range r.ops {
		o := &t.Ops[i]
		felt := o.Service
		if o.Response != nil {
			felt = o.Response
			r.histogram(at, recording.LoadFromSend+" "+op, o.Service)
		}
		r.histogram(at, recording.LoadFromIntended+" "+op, felt)
	}
	r.cpuNs, r.runQueueNs = r.cpuNs+t.CPUNs, r.runQueueNs+t.RunQueueNs
	for name, ns := range map[string]int64{"workers.cpu_ns": r.cpuNs, "workers.run_queue_ns": r.runQueueNs} {
		r.sink.Sample(recording.Sample{
			TimeNs: at + int64(s.Seconds*1e9), Source: recording.SourceLoad,
			Subject: recording.SubjectSelf, Name: name, Value: float64(ns),
		})
	}
	kinds := 0
	for kind, n := range t.Errors {
		if kinds++; kinds > kindsPerSecond {
			break
		}
		r.sink.Event(recording.Event{
			TimeNs: at, DurationNs: int64(s.Seconds * 1e9), Source: recording.SourceLoad,
			Subject: r.node, Kind: recording.KindError,
			Detail: recording.Detail(recording.ErrorDetail{Phase: "command", Message: fmt.Sprintf("%d x %s", n,
				kind)}),
		})
	}
	r.adapt(t)
}

// adapt chooses from how much on calls are told, so that they are about slowPerSecond.
func (r *Recorder) adapt(t *engine.Tally) {
	r.told.Store(0)
	from := r.slow
	if felt, _ := Histograms(t); felt.TotalCount() > slowPerSecond {
		from = max(from, felt.ValueAtPercentile(100*(1-slowPerSecond/float64(felt.TotalCount()))))
	}
	r.usual.Store(from)
	r.from.Store(from)
}

func (r *Recorder) histogram(atNs int64, name string, h *hdrhistogram.Histogram) {
	if h.TotalCount() == 0 {
		return
	}
	if b, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase); err == nil {
		r.sink.Histogram(recording.Histogram{
			Second: atNs / 1e9, Source: recording.SourceLoad, Node: r.node, Op: name,
			HDR: b,
		})
	}
}

// Close writes what is left. The load must have ended.
func (r *Recorder) Close() {
	if r.finished.Swap(true) {
		return
	}
	r.from.Store(math.MaxInt64)
	close(r.stop)
	<-r.ended
}
