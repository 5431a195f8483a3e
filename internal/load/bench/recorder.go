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

// Limits of the single calls that a load writes into a recording.
const (
	slowPerSecond  = 200 // groups of slow calls; from there on only slower ones are reported
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
	slow    int64 // ns; the slow threshold
	startNs int64

	cpuNs, runQueueNs int64 // of the workers so far

	reportFrom atomic.Int64 // engine.Options.SlowFrom
	threshold  atomic.Int64 // reportFrom between two samples
	reported   atomic.Int64 // groups in the current second
	rows       chan engine.Slow
	stop       chan struct{}
	ended      chan struct{}
	finished   atomic.Bool
}

// NewRecorder records the load of o against a node; slow is the slow threshold. It sets the hooks of o.Load. The caller
// calls Start, Second for each second, and Close when the load has ended.
func NewRecorder(o *Options, sink recording.Sink, slow time.Duration) *Recorder {
	r := &Recorder{
		sink: sink, node: o.Target.Address, open: o.Load.Open(), slow: int64(slow),
		rows: make(chan engine.Slow, rowsWaiting),
		stop: make(chan struct{}), ended: make(chan struct{}),
	}
	for _, op := range o.Load.Ops() {
		r.ops = append(r.ops, op.Name)
	}
	r.threshold.Store(r.slow)
	r.reportFrom.Store(r.slow)
	o.Load.SlowFrom, o.Load.OnSlow = &r.reportFrom, r.onSlow
	sink.SetMeta(recording.MetaSource+recording.SourceLoad,
		recording.Detail(recording.SourceStatus{Name: recording.SourceLoad, Used: true}))
	go r.write()
	return r
}

// Start is called when the load begins, with the time of its clock in ns.
func (r *Recorder) Start(ns int64) { r.startNs = ns }

// onSlow runs on a worker's thread. While reportFrom is 0 it takes the next call, whatever its time, as the sample.
func (r *Recorder) onSlow(s engine.Slow) {
	threshold := r.threshold.Load()
	if r.reportFrom.Load() == 0 && !r.reportFrom.CompareAndSwap(0, threshold) && s.EndNs-s.IntendedNs < threshold {
		return // another worker has reported the sample
	}
	if r.reported.Add(1)%slowPerSecond == 0 {
		r.threshold.Store(2 * max(r.threshold.Load(), r.slow))
		r.reportFrom.Store(r.threshold.Load())
	}
	select {
	case r.rows <- s:
	default:
	}
}

// write turns what the workers report into rows, and asks for samples.
func (r *Recorder) write() {
	defer close(r.ended)
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		select {
		case s := <-r.rows:
			r.row(s)
		case <-tick.C:
			r.reportFrom.Store(0)
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

// Second writes a second of the load, and adapts from which latency calls are reported in the next one.
func (r *Recorder) Second(s Second, t *engine.Tally) {
	at := r.startNs + int64(s.Second)*1e9
	for i, op := range r.ops {
		o := &t.Ops[i]
		latency := o.Service
		if o.Response != nil {
			latency = o.Response
			r.histogram(at, recording.LoadFromSend+" "+op, o.Service)
		}
		r.histogram(at, recording.LoadFromIntended+" "+op, latency)
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

// adapt chooses the latency from which calls are reported, so that they are about slowPerSecond.
func (r *Recorder) adapt(t *engine.Tally) {
	r.reported.Store(0)
	from := r.slow
	if latency, _ := Histograms(t); latency.TotalCount() > slowPerSecond {
		from = max(from, latency.ValueAtPercentile(100*(1-slowPerSecond/float64(latency.TotalCount()))))
	}
	r.threshold.Store(from)
	r.reportFrom.Store(from)
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
	r.reportFrom.Store(math.MaxInt64)
	close(r.stop)
	<-r.ended
}
