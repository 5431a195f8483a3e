package live

import (
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
)

// Bounds of what a Window holds. Beyond them it reaches less far back.
const (
	DefaultSpan   = 30 * time.Second
	windowCalls   = 5000     // with their segments
	windowBytes   = 48 << 20 // of all rows, about
	windowSeries  = 50_000   // series of samples, and connections
	leastSpan     = 2 * time.Second
	trimEvery     = 5 * time.Second
	trimFull      = 200 * time.Millisecond
	idleFor       = 5 * time.Minute // a process or connection without a row for so long is forgotten
	rowBytes      = 96              // of a row without its texts
	segmentBytes  = 80
	notesOfWindow = 1000 // blind spots
)

// Window keeps the rows of the last seconds of a watch in memory, so that they can be judged while it goes on. It is a
// recording.ProfileSink. Of what is written only when it changes, the last row before these seconds is kept, too.
type Window struct {
	clock clock.Clock
	span  time.Duration

	mu         sync.Mutex
	meta       map[string]string
	calls      []callRow
	histograms []recording.Histogram
	events     []recording.Event
	notes      []recording.Event // blind spots, and what was unseen: of the whole watch
	snapshots  []recording.Snapshot
	profiles   []recording.Profile
	samples    map[seriesKey][]recording.Point
	uses       map[string][]recording.ConnUse
	bytes      int64
	trimmedNs  int64 // when rows were last taken out
	fromNs     int64 // rows before are gone; 0: none is
	dropped    int64 // rows that there was no room for
}

type seriesKey struct{ Source, Subject, Name string }

type callRow struct {
	call     recording.Call
	segments []recording.Segment
}

// NewWindow makes an empty window of the last span; 0: DefaultSpan.
func NewWindow(c clock.Clock, span time.Duration) *Window {
	if span <= 0 {
		span = DefaultSpan
	}
	return &Window{
		clock: c, span: span, meta: map[string]string{}, samples: map[seriesKey][]recording.Point{},
		uses: map[string][]recording.ConnUse{},
	}
}

// Call implements recording.Sink.
func (w *Window) Call(c recording.Call, segs ...recording.Segment) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.room() {
		return
	}
	w.calls = append(w.calls, callRow{c, slices.Clone(segs)})
	w.took(callBytes(w.calls[len(w.calls)-1]))
}

// Histogram implements recording.Sink.
func (w *Window) Histogram(h recording.Histogram) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.room() {
		return
	}
	w.histograms = append(w.histograms, h)
	w.took(rowBytes + len(h.HDR))
}

// Sample implements recording.Sink.
func (w *Window) Sample(s recording.Sample) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.room() {
		return
	}
	k := seriesKey{Source: s.Source, Subject: s.Subject, Name: s.Name}
	points, known := w.samples[k]
	if !known && len(w.samples) >= windowSeries {
		return
	}
	w.samples[k] = append(points, recording.Point{TimeNs: s.TimeNs, Value: s.Value})
	w.took(pointBytes)
}

// ConnUse implements recording.Sink.
func (w *Window) ConnUse(client string, u recording.ConnUse) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.room() {
		return
	}
	uses, known := w.uses[client]
	if !known && len(w.uses) >= windowSeries {
		return
	}
	w.uses[client] = append(uses, u)
	w.took(useBytes)
}

const (
	pointBytes = 16
	useBytes   = 96
)

// Event implements recording.Sink.
func (w *Window) Event(e recording.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.Kind == recording.KindBlindSpot || e.Kind == recording.KindUnseen {
		w.note(e)
		return
	}
	if !w.room() {
		return
	}
	w.events = append(w.events, e)
	w.took(rowBytes + len(e.Detail))
}

// note keeps what holds for the whole watch. A text that comes again moves to the end.
func (w *Window) note(e recording.Event) {
	w.notes = slices.DeleteFunc(w.notes, func(o recording.Event) bool {
		return o.Subject == e.Subject && o.Source == e.Source && o.Kind == e.Kind && o.Detail == e.Detail
	})
	if w.notes = append(w.notes, e); len(w.notes) > notesOfWindow {
		w.notes = slices.Delete(w.notes, 0, 1)
	}
}

// Snapshot implements recording.Sink.
func (w *Window) Snapshot(s recording.Snapshot) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.room() {
		return
	}
	w.snapshots = append(w.snapshots, s)
	w.took(rowBytes + len(s.Body))
}

// Profile implements recording.ProfileSink.
func (w *Window) Profile(p recording.Profile) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.room() {
		return
	}
	w.profiles = append(w.profiles, p)
	w.took(rowBytes + len(p.Pprof))
}

// SetMeta implements recording.Sink.
func (w *Window) SetMeta(key, value string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.meta[key] = value
}

// Recording is what the window holds, as a recording of these seconds; false before the watch has begun.
func (w *Window) Recording() (*recording.Recording, bool) {
	copied, ok := w.copied()
	if !ok {
		return nil, false
	}
	rec := recording.New()
	rec.Meta = copied.meta
	for _, c := range copied.calls {
		rec.Call(c.call, c.segments...)
	}
	rec.Histograms = copied.histograms
	rec.Events = slices.Concat(copied.notes, copied.events)
	rec.Snapshots = copied.snapshots
	rec.Profiles = copied.profiles
	for k, points := range copied.samples {
		for _, p := range points {
			rec.Sample(recording.Sample{
				TimeNs: p.TimeNs, Source: k.Source, Subject: k.Subject, Name: k.Name, Value: p.Value,
			})
		}
	}
	for client, uses := range copied.uses {
		for _, u := range uses {
			rec.ConnUse(client, u)
		}
	}
	rec.Index()
	return rec, true
}

// copied has the rows as they are now. Rows are only added behind them, so that copies of the lists are enough.
func (w *Window) copied() (c *Window, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	start, err := strconv.ParseInt(w.meta[recording.MetaStart], 10, 64)
	if err != nil {
		return nil, false
	}
	now := w.clock.Now()
	c = &Window{
		meta: maps.Clone(w.meta), calls: slices.Clone(w.calls), histograms: slices.Clone(w.histograms),
		events: slices.Clone(w.events), notes: slices.Clone(w.notes), snapshots: slices.Clone(w.snapshots),
		profiles: slices.Clone(w.profiles), samples: maps.Clone(w.samples), uses: maps.Clone(w.uses),
	}
	if w.meta[recording.MetaEnd] == "" {
		c.meta[recording.MetaEnd] = strconv.FormatInt(now, 10)
	}
	if w.dropped > 0 {
		c.meta[recording.MetaDropped] = strconv.FormatInt(w.dropped, 10)
	}
	if w.fromNs > start {
		c.meta[recording.MetaStart] = strconv.FormatInt(w.fromNs, 10)
	}
	return c, true
}
