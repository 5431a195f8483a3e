package trace

import (
	"sync"
	"time"

	"slowpath/internal/recording"
)

// Options of a Watch.
type Options struct {
	Filter Filter
	Slow   time.Duration // a call of this length or more is slow
	// SamplePerSecond is how many of the other calls are shown, at most.
	SamplePerSecond float64
	Show            func(Call) // called for each call to show, must not block; nil shows none
	Perfetto        *Perfetto  // nil: no export
	Tee             recording.Sink
}

// Watch is a Sink that shows the calls that match the filter, and sums up all calls.
type Watch struct {
	Options
	mu        sync.Mutex
	aggregate *aggregate
	sampled   int64 // time of the last call of the sample, in nanoseconds since the Unix epoch
}

// NewWatch returns a watch.
func NewWatch(o Options) *Watch { return &Watch{Options: o, aggregate: newAggregate()} }

// Call implements recording.Sink.
func (w *Watch) Call(row recording.Call, segs ...recording.Segment) {
	if w.Tee != nil {
		w.Tee.Call(row, segs...)
	}
	if row.Source != recording.SourceTap {
		return
	}
	c := newCall(row, segs)
	w.mu.Lock()
	defer w.mu.Unlock()
	wanted := w.Filter.matches(c)
	if c.Ns >= int64(w.Slow) {
		w.aggregate.slowCall(c, wanted)
	} else if wanted {
		wanted = w.inSample(c)
	}
	if !wanted {
		return
	}
	if w.Perfetto != nil {
		w.Perfetto.Call(c)
	}
	if w.Show != nil {
		w.Show(c)
	}
}

// inSample selects calls that are far enough apart.
func (w *Watch) inSample(c Call) bool {
	if w.SamplePerSecond <= 0 || float64(c.ToNs()-w.sampled) < 1e9/w.SamplePerSecond {
		return false
	}
	w.sampled = c.ToNs()
	return true
}

// Histogram implements recording.Sink.
func (w *Watch) Histogram(h recording.Histogram) {
	if w.Tee != nil {
		w.Tee.Histogram(h)
	}
	if h.Source == recording.SourceTap {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.aggregate.histogram(h)
	}
}

// Sample implements recording.Sink.
func (w *Watch) Sample(s recording.Sample) {
	if w.Tee != nil {
		w.Tee.Sample(s)
	}
	if s.Source == recording.SourceTap && s.Subject == recording.SubjectSelf {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.aggregate.counters[s.Name] = s.Value
	}
}

// ConnUse implements recording.Sink.
func (w *Watch) ConnUse(client string, u recording.ConnUse) {
	if w.Tee != nil {
		w.Tee.ConnUse(client, u)
	}
}

// Event implements recording.Sink.
func (w *Watch) Event(e recording.Event) {
	if w.Tee != nil {
		w.Tee.Event(e)
	}
	if w.Perfetto != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.Perfetto.Event(e)
	}
}

// Snapshot implements recording.Sink.
func (w *Watch) Snapshot(s recording.Snapshot) {
	if w.Tee != nil {
		w.Tee.Snapshot(s)
	}
}

// SetMeta implements recording.Sink.
func (w *Watch) SetMeta(key, value string) {
	if w.Tee != nil {
		w.Tee.SetMeta(key, value)
	}
	if filter, ok := recording.SelectedCallsOf(map[string]string{key: value}); ok {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.aggregate.processFilter = &filter
	}
}

// Summary sums up all calls so far.
func (w *Watch) Summary() Summary {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.aggregate.summary()
	s.SlowNs, s.Filtered = int64(w.Slow), !w.Filter.matchesAll()
	if len(w.Filter.Commands) > 0 {
		kept := s.Commands[:0]
		for _, c := range s.Commands {
			if w.Filter.matchesCommand(c.Op) {
				kept = append(kept, c)
			}
		}
		s.Commands = kept
	}
	return s
}
