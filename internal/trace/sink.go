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
	// SamplePerSecond: all of the other calls are shown up to this rate, as many as that at once; of more a part.
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
	room      float64           // so many calls of the sample may be shown now
	filledNs  int64             // when room was last added to, in nanoseconds since the Unix epoch
	servers   map[string]string // processes of nodes, like Call.Process
}

// NewWatch returns a watch.
func NewWatch(o Options) *Watch {
	return &Watch{Options: o, aggregate: newAggregate(), room: sampleBurst(o.SamplePerSecond)}
}

// Call implements recording.Sink.
func (w *Watch) Call(row recording.Call, segs ...recording.Segment) {
	if w.Tee != nil {
		w.Tee.Call(row, segs...)
	}
	if row.Source != recording.SourceTap {
		return
	}
	c := newCall(row, segs)
	c.server = w.servers[c.Node]
	w.mu.Lock()
	defer w.mu.Unlock()
	wanted := w.Filter.matches(c)
	if c.Ns >= int64(w.Slow) {
		w.aggregate.slowCall(c, wanted)
	} else if wanted {
		w.aggregate.fast++
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

// sampleBurst is how many calls of a sample may come at once: as many as in a second.
func sampleBurst(perSecond float64) float64 { return max(perSecond, 1) }

// inSample takes a call for the sample while there is room for it.
func (w *Watch) inSample(c Call) bool {
	if w.SamplePerSecond <= 0 {
		return false
	}
	if c.ToNs() > w.filledNs {
		since := time.Duration(c.ToNs() - w.filledNs)
		w.room = min(w.room+since.Seconds()*w.SamplePerSecond, sampleBurst(w.SamplePerSecond))
		w.filledNs = c.ToNs()
	}
	if w.room < 1 {
		return false
	}
	w.room--
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
