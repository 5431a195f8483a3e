// Package live keeps the last minutes of a watch in memory, bounded: what the terminal view, the agent's page, its
// metrics and its triggers show while the watch goes on. It counts and judges nothing.
package live

import (
	"slices"
	"strings"
	"sync"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// Options of a view.
type Options struct {
	// Keep is for how long seconds and slow calls are kept; 0: DefaultKeep.
	Keep time.Duration
	// Slow is from when on a call is slow; 0: 5 ms, or three times the fastest call of the slowest path where that is
	// more (docs/decisions/0003-automatic-slow-threshold.md).
	Slow  time.Duration
	Clock clock.Clock // the real one when nil
}

// DefaultKeep is for how long a view keeps what it saw.
const DefaultKeep = 15 * time.Minute

// Bounds of what a view holds. What comes beyond them counts as "other", or replaces the oldest.
const (
	maxSlow    = 2000  // slow calls with their segments
	maxParts   = 64    // segments of one of them
	maxNodes   = 64    // nodes; rows of further ones are left out
	maxOps     = 64    // commands per node
	maxCallers = 1024  // processes and hosts
	maxConns   = 32768 // connections whose caller is known
	maxSamples = 4096  // numbers that are kept
	maxTexts   = 256   // snapshots
	maxText    = 1 << 20
	maxNotes   = 256 // blind spots, kinds of unseen
)

// Whose says whose calls were counted.
type Whose string

// The two kinds of callers.
const (
	Users Whose = "users" // the server's clients, by the tap
	Own   Whose = "own"   // slowpath's own, by the probe
)

// View is what was seen in the last minutes. It is a recording.ProfileSink: its methods never block on anything but
// each other.
type View struct {
	o  Options
	mu sync.Mutex

	reader  recording.HistogramReader
	nodes   map[string]*node
	seconds int64 // of Options.Keep

	slow     []SlowCall // a ring, in order of Number
	numbered uint64     // slow calls so far

	callers  map[string]*caller
	conns    map[string]*conn
	programs map[int]recording.Program   // what processes run
	edges    map[[2]string]*Edge         // since TakeEdges, by keys of callers and nodes
	remote   map[[2]string]float64       // calls of other hosts, by node and host, as they were counted
	made     map[int64]map[*caller]int64 // calls of the last seconds, of which the rows say that they ended then
	ended    int                         // callers that have lost their last connection since ended ones were joined

	meta    map[string]string
	samples map[sampleKey]recording.Sample
	texts   map[[2]string]string
	blind   map[recording.BlindSpot]bool
	unseen  map[string]recording.Unseen

	waiting map[chan struct{}]bool
	newest  int64 // second of the last row, of a histogram or a call
}

type sampleKey struct{ source, subject, name string }

// New makes an empty view.
func New(o Options) *View {
	if o.Keep <= 0 {
		o.Keep = DefaultKeep
	}
	if o.Clock == nil {
		o.Clock = clock.New()
	}
	return &View{
		o: o, seconds: max(int64(o.Keep/time.Second), 1), nodes: map[string]*node{}, callers: map[string]*caller{},
		conns: map[string]*conn{}, programs: map[int]recording.Program{}, edges: map[[2]string]*Edge{},
		remote: map[[2]string]float64{}, made: map[int64]map[*caller]int64{},
		meta: map[string]string{}, samples: map[sampleKey]recording.Sample{},
		texts: map[[2]string]string{}, blind: map[recording.BlindSpot]bool{}, unseen: map[string]recording.Unseen{},
		waiting: map[chan struct{}]bool{},
	}
}

// complete is how long after its end a second is complete: the tap reads its histograms about once per second.
const complete = 2

// now is the second that it is. v.mu is held by none.
func (v *View) now() int64 { return v.o.Clock.Now() / 1e9 }

// Complete is the end of the complete seconds: seconds before it do not change any more.
func (v *View) Complete() int64 { return v.now() - complete + 1 }

// Subscribe gives a channel that receives about once per second, when rows of a new second came, and the function that
// ends this. A receiver that is slow misses seconds, and holds up nobody.
func (v *View) Subscribe() (<-chan struct{}, func()) {
	c := make(chan struct{}, 1)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.waiting[c] = true
	return c, func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.waiting, c)
	}
}

// advance wakes subscribers when a row is of a new second. v.mu is held.
func (v *View) advance(second int64) {
	if second <= v.newest {
		return
	}
	v.newest = second
	for c := range v.waiting {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// SetMeta implements recording.Sink.
func (v *View) SetMeta(key, value string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, known := v.meta[key]; known || len(v.meta) < maxTexts {
		v.meta[key] = value
	}
}

// Meta is a property of the watch, such as recording.MetaServer; empty: not known.
func (v *View) Meta(key string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.meta[key]
}

// Snapshot implements recording.Sink. The last one of a name is kept.
func (v *View) Snapshot(s recording.Snapshot) {
	if len(s.Body) > maxText {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if s.Name == recording.SnapshotProgram || s.Name == recording.SnapshotEnds {
		v.learnOf(s)
		return
	}
	k := [2]string{s.Subject, s.Name}
	if _, known := v.texts[k]; known || len(v.texts) < maxTexts {
		v.texts[k] = s.Body
	}
}

// LastSnapshot is the last text of a name, such as that of CLUSTER NODES of a node.
func (v *View) LastSnapshot(subject, name string) (body string, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	body, ok = v.texts[[2]string{subject, name}]
	return body, ok
}

// Sample implements recording.Sink.
func (v *View) Sample(s recording.Sample) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if s.Source == recording.SourceTap {
		v.countErrors(s)
		v.countRemote(s)
	}
	k := sampleKey{s.Source, s.Subject, s.Name}
	if _, known := v.samples[k]; known || keepsSample(s) && len(v.samples) < maxSamples {
		v.samples[k] = s
	}
}

// keepsSample leaves out what there are many of: threads, processes, connections and the counters of commands.
func keepsSample(s recording.Sample) bool {
	return !strings.HasPrefix(s.Subject, recording.ConnPrefix) &&
		!strings.HasPrefix(s.Name, recording.CallsFromPrefix) && !strings.HasPrefix(s.Name, "thread.") &&
		!strings.HasPrefix(s.Name, "cmdstat_") && !strings.HasPrefix(s.Name, "latencystat_")
}

// LastSample is the last number of a series, and when it was read, in nanoseconds since the Unix epoch.
func (v *View) LastSample(of series.Name, which string) (value float64, timeNs int64, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s, ok := v.samples[sampleKey{of.Source, of.About(which), of.Name}]
	return s.Value, s.TimeNs, ok
}

// Profile implements recording.ProfileSink; a view shows none.
func (*View) Profile(recording.Profile) {}

// BlindSpots are what could not be seen, in the order of their texts.
func (v *View) BlindSpots() []recording.BlindSpot {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := make([]recording.BlindSpot, 0, len(v.blind))
	for b := range v.blind {
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b recording.BlindSpot) int { return strings.Compare(a.What+a.Why, b.What+b.Why) })
	return out
}

// Unseen is how much was missed, by what; the last report of each counts.
func (v *View) Unseen() []recording.Unseen {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := make([]recording.Unseen, 0, len(v.unseen))
	for _, u := range v.unseen {
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b recording.Unseen) int { return strings.Compare(a.What, b.What) })
	return out
}
