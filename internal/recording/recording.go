package recording

import (
	"cmp"
	"encoding/json"
	"iter"
	"slices"
	"sort"
	"strconv"
	"strings"

	"slowpath/internal/recording/series"
)

// Recording is a recording in memory, ordered by time: the only input of a diagnosis.
type Recording struct {
	Meta       map[string]string
	Calls      []Call
	Histograms []Histogram
	Events     []Event
	Snapshots  []Snapshot
	Profiles   []Profile
	// Damage says in a sentence which rows of its file could not be read; empty: all were.
	Damage string
	// Hosts has for each node of a recording that was joined of those of several servers' hosts what its host saw, with
	// the calls that were joined: processes, cgroups and the machine of other hosts are not in it. Else it is nil.
	Hosts    map[string]*Recording
	earlier  *Recording         // see Earlier
	segments map[int64]*partsOf // by call id
	parts    []part             // of all segments
	placeOf  map[part]uint64    // in parts
	series   map[seriesKey]Series
	conns    map[string]*usesOf        // by the client's address
	packed   *packedEvents             // the events that begin and end connections, if they are not in Events
	eventsOf map[eventKey][]int32      // places in Events, in order; without those that were added since Index
	indexed  int                       // events in eventsOf
	sums     map[string][]HistogramSum // by source, when somebody asked
	summed   bool                      // sums are complete, and the rows of Histograms that they are of have no HDR
	standFor int                       // see StandsFor; 0 for 1
	apart    []int64                   // ids of calls that stand for themselves
}

// eventKey is what EventsOf looks for.
type eventKey struct{ source, subject, kind string }

// SeriesKey names a series of samples.
type seriesKey struct{ Source, Subject, Name string }

// Point is a sample of one series.
type Point struct {
	TimeNs int64
	Value  float64
}

// Series is the samples of one name, ordered by time. Sources write a sample when its value changes, so that the value
// between two points is the earlier one.
type Series []Point

// New makes an empty recording. It is a Sink for one goroutine; tests make small recordings with it. Call Index after
// the last row.
func New() *Recording {
	return &Recording{
		Meta: map[string]string{}, segments: map[int64]*partsOf{}, placeOf: map[part]uint64{},
		series: map[seriesKey]Series{}, conns: map[string]*usesOf{},
	}
}

// Call implements Sink.
func (r *Recording) Call(c Call, segs ...Segment) {
	if c.ID == 0 {
		c.ID = int64(len(r.Calls) + 1)
	}
	r.Calls = append(r.Calls, c)
	for _, s := range segs {
		r.addSegment(c.ID, s)
	}
}

// Histogram implements Sink.
func (r *Recording) Histogram(h Histogram) {
	r = r.of(&h.Source)
	r.Histograms = append(r.Histograms, h)
	if !r.summed {
		r.sums = nil
	}
}

// Sample implements Sink.
func (r *Recording) Sample(s Sample) { r.addSample(s) }

// Event implements Sink.
func (r *Recording) Event(e Event) {
	r = r.of(&e.Source)
	r.Events = append(r.Events, e)
}

// Snapshot implements Sink.
func (r *Recording) Snapshot(s Snapshot) {
	r = r.of(&s.Source)
	r.Snapshots = append(r.Snapshots, s)
}

// Profile implements ProfileSink.
func (r *Recording) Profile(p Profile) { r.Profiles = append(r.Profiles, p) }

// SetMeta implements Sink.
func (r *Recording) SetMeta(key, value string) { r.Meta[key] = value }

func (r *Recording) addSample(s Sample) {
	r = r.of(&s.Source)
	k := seriesKey{s.Source, s.Subject, s.Name}
	r.series[k] = append(r.series[k], Point{s.TimeNs, s.Value})
}

// Index sorts all rows by time.
func (r *Recording) Index() {
	sortByTime(r.Calls, func(c Call) int64 { return c.IntendedNs })
	sortByTime(r.Events, func(e Event) int64 { return e.TimeNs })
	sortByTime(r.Snapshots, func(s Snapshot) int64 { return s.TimeNs })
	sortByTime(r.Profiles, func(p Profile) int64 { return p.TimeNs })
	sortByTime(r.Histograms, func(h Histogram) int64 { return h.Second })
	for _, s := range r.series {
		sortByTime(s, func(p Point) int64 { return p.TimeNs })
	}
	if r.packed != nil {
		r.packed.index()
	}
	r.indexConns()
	r.indexEvents()
	r.indexEarlier()
}

// sortByTime is stable. Most rows are in order already.
func sortByTime[T any](rows []T, timeNs func(T) int64) {
	byTime := func(a, b T) int { return cmp.Compare(timeNs(a), timeNs(b)) }
	if !slices.IsSortedFunc(rows, byTime) {
		slices.SortStableFunc(rows, byTime)
	}
}

// indexEvents has EventsOf find events without a search through all: causes ask for some kinds once per slow call.
func (r *Recording) indexEvents() {
	r.eventsOf, r.indexed = map[eventKey][]int32{}, len(r.Events)
	for i, e := range r.Events {
		k := eventKey{e.Source, e.Subject, e.Kind}
		r.eventsOf[k] = append(r.eventsOf[k], int32(i))
	}
}

// Series gives the samples of one name, nil if there are none.
func (r *Recording) Series(source, subject, name string) Series {
	return r.series[seriesKey{source, subject, name}]
}

// HostOf is what the host of a node saw: the recording itself, where it is of one server's host.
func (r *Recording) HostOf(node string) *Recording { return cmp.Or(r.Hosts[node], r) }

// Samples are the samples of all series, those of one series in order of time.
func (r *Recording) Samples() iter.Seq[Sample] {
	return func(yield func(Sample) bool) {
		for k, s := range r.series {
			for _, p := range s {
				if !yield(Sample{p.TimeNs, k.Source, k.Subject, k.Name, p.Value}) {
					return
				}
			}
		}
	}
}

// Of is a declared series; where it is about one of several, about which (series.Name.About).
func (r *Recording) Of(s series.Name, which string) Series {
	return r.Series(s.Source, s.About(which), s.Name)
}

// Names lists the series of a source and subject whose name starts with prefix, sorted.
func (r *Recording) Names(source, subject, prefix string) []string {
	var names []string
	for k := range r.series {
		if k.Source == source && k.Subject == subject && strings.HasPrefix(k.Name, prefix) {
			names = append(names, k.Name)
		}
	}
	sort.Strings(names)
	return names
}

// NamesBySubject lists the names of a source's series that start with prefix, by subject, in no order.
func (r *Recording) NamesBySubject(source, prefix string) map[string][]string {
	out := map[string][]string{}
	for k := range r.series {
		if k.Source == source && strings.HasPrefix(k.Name, prefix) {
			out[k.Subject] = append(out[k.Subject], k.Name)
		}
	}
	return out
}

// Subjects lists the subjects of a source that start with prefix, sorted.
func (r *Recording) Subjects(source, prefix string) []string {
	seen := map[string]bool{}
	for k := range r.series {
		if k.Source == source && strings.HasPrefix(k.Subject, prefix) {
			seen[k.Subject] = true
		}
	}
	subjects := make([]string, 0, len(seen))
	for s := range seen {
		subjects = append(subjects, s)
	}
	sort.Strings(subjects)
	return subjects
}

// EventCount is the number of all events.
func (r *Recording) EventCount() int {
	if r.packed == nil {
		return len(r.Events)
	}
	return len(r.Events) + r.packed.count
}

// EventsOf gives the events of a kind about a subject, in order of time; an empty subject matches all. Those that begin
// and end connections are in Conns and Handshakes.
func (r *Recording) EventsOf(source, subject, kind string) []Event {
	var out []Event
	from := 0
	if subject != "" {
		places := r.eventsOf[eventKey{source, subject, kind}]
		out = slices.Grow(out, len(places))
		for _, i := range places {
			out = append(out, r.Events[i])
		}
		from = r.indexed
	}
	for _, e := range r.Events[from:] {
		if e.Source == source && e.Kind == kind && (subject == "" || e.Subject == subject) {
			out = append(out, e)
		}
	}
	return out
}

// SnapshotOf gives the last snapshot of a name about a subject.
func (r *Recording) SnapshotOf(source, subject, name string) (Snapshot, bool) {
	for i := len(r.Snapshots) - 1; i >= 0; i-- {
		s := r.Snapshots[i]
		if s.Source == source && s.Subject == subject && s.Name == name {
			return s, true
		}
	}
	return Snapshot{}, false
}

// Window is the time that the recording covers, in nanoseconds since the Unix epoch. If the writer was killed before it
// wrote the end, the end is that of the last row.
func (r *Recording) Window() (startNs, endNs int64) {
	startNs, _ = strconv.ParseInt(r.Meta[MetaStart], 10, 64)
	endNs, _ = strconv.ParseInt(r.Meta[MetaEnd], 10, 64)
	if endNs > 0 {
		return startNs, endNs
	}
	for _, s := range r.series {
		endNs = max(endNs, s[len(s)-1].TimeNs)
	}
	for _, uses := range r.conns {
		endNs = max(endNs, uses.last.TimeNs)
	}
	for _, e := range r.Events {
		endNs = max(endNs, e.TimeNs+e.DurationNs)
	}
	if r.packed != nil {
		endNs = max(endNs, r.packed.endNs)
	}
	for _, c := range r.Calls {
		endNs = max(endNs, c.EndNs)
	}
	return startNs, max(startNs, endNs)
}

// WatchedNs is how much of [fromNs, toNs) was watched, in nanoseconds: a recording may be of several watches, with time
// between them. What is divided by time is divided by this.
func (r *Recording) WatchedNs(fromNs, toNs int64) int64 {
	ns := toNs - fromNs
	for _, e := range r.Events {
		if e.Kind == KindUnwatched {
			ns -= max(min(e.TimeNs+e.DurationNs, toNs)-max(e.TimeNs, fromNs), 0)
		}
	}
	return max(ns, 0)
}

// Nodes lists the addresses of the watched servers.
func (r *Recording) Nodes() []string {
	var nodes []string
	if json.Unmarshal([]byte(r.Meta[MetaNodes]), &nodes) != nil || len(nodes) == 0 {
		if t := r.Meta[MetaTarget]; t != "" {
			return []string{t}
		}
	}
	return nodes
}

// SourceStatuses lists which sources took part, in the order of their names.
func (r *Recording) SourceStatuses() []SourceStatus {
	var out []SourceStatus
	for k, v := range r.Meta {
		var s SourceStatus
		if strings.HasPrefix(k, MetaSource) && json.Unmarshal([]byte(v), &s) == nil {
			out = append(out, s)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// Thinned reports whether rows were left out because the recording reached its limit: counts of its events are too low.
func (r *Recording) Thinned() bool { return r.Meta[MetaThinned] != "" }

// StandsFor is how many calls of users, that are slow, one in Calls stands for: of a large recording a part is read.
func (r *Recording) StandsFor(c Call) int {
	if r.standFor == 0 || c.Source != SourceTap || c.Error != "" || slices.Contains(r.apart, c.ID) {
		return 1
	}
	return r.standFor
}

// Used reports whether a source took part.
func (r *Recording) Used(source string) bool {
	for _, s := range r.SourceStatuses() {
		if s.Name == source {
			return s.Used
		}
	}
	return false
}

// SeesCalls reports whether a source saw the calls of clients: the tap, or a capture of packets.
func (r *Recording) SeesCalls() bool { return r.Used(SourceTap) || r.Used(SourceCapture) }

var (
	_ ProfileSink = (*Recording)(nil)
	_ ProfileSink = (*Writer)(nil)
)

// OwnCallsApart reports whether the tap's counts are of users' calls alone. In older recordings the server's end counts
// slowpath's own calls, too.
func (r *Recording) OwnCallsApart() bool {
	return len(r.Of(series.TapCallsOwn, "")) > 0
}
