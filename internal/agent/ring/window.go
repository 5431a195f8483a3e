package ring

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"slowpath/internal/recording"
)

// window writes the rows of a time to a recording. What came before it becomes the state that holds at its begin.
type window struct {
	out          *recording.Writer
	fromNs, toNs int64
	earlierNs    int64           // from then on to fromNs rows are kept as those before it
	earlierHeld  bool            // what held at earlierNs is kept
	nodes        map[string]bool // of whom rows are kept; nil: of all
	others       map[string]bool // the other nodes that are watched

	before   *state // what held at the begin
	carrying bool   // the block has what held when its file began
	first    bool   // no block was read yet
	whole    bool   // the watch that is read began in the window
	counters map[seriesKey]*counter
	lossesOf map[noteKey]*losses
	used     map[string]bool // clients' addresses with a use in the window and one before
	metas    map[string]string
	blockNs  int64 // when the block began that is read
	lastNs   int64 // when the one before ended
	countNs  int64 // when the tap counted last
	beganNs  int64 // when the first watch began that is in the window
	startNs  int64 // its own MetaStart, once another watch began in the window; 0: it is the only one
	rows     int64
	lost     int64
	broken   map[string]bool // files with damaged blocks
}

func newWindow(out *recording.Writer, o outline, c Cut) *window {
	fromNs, toNs := o.align(c.From.UnixNano(), c.To.UnixNano())
	w := &window{
		out: out, fromNs: fromNs, toNs: toNs, earlierNs: fromNs - int64(c.Before), before: newState(), first: true,
		counters: map[seriesKey]*counter{}, lossesOf: map[noteKey]*losses{}, metas: map[string]string{},
		broken: map[string]bool{}, used: map[string]bool{}, others: map[string]bool{},
	}
	if len(c.Nodes) > 0 {
		w.nodes = map[string]bool{}
		for _, n := range c.Nodes {
			w.nodes[n] = true
		}
	}
	return w
}

// read reads a block.
func (w *window) read(b *block) error {
	w.blockNs, w.carrying = b.fromNs, b.carried
	if b.carried && !w.first { // what it says was read already
		w.lastNs = max(w.lastNs, b.toNs)
		return nil
	}
	if w.first {
		w.first, w.beganNs = false, b.fromNs
	}
	err := decode(b.raw, b.fromNs, w)
	w.lastNs = b.toNs
	return err
}

// inside reports whether something that ended then belongs to the window.
func (w *window) inside(ns int64) bool { return !w.earlier(ns) && ns < w.toNs }

// earlier reports whether it ended before the window. A watch that begins in the window is in it from its first row.
func (w *window) earlier(ns int64) bool { return w.carrying || ns < w.fromNs && !w.whole }

// Call implements recording.Sink.
func (w *window) Call(c recording.Call, segs ...recording.Segment) {
	if w.inside(c.EndNs) && !w.others[c.Node] {
		c.ID = 0 // the recording numbers its calls
		w.rows++
		w.out.Call(c, segs...)
	}
}

// Histogram implements recording.Sink. Those of the tap are of the time between two of its counts, those of others of a
// whole second.
func (w *window) Histogram(h recording.Histogram) {
	inside := w.inside(max(h.Second*1e9, w.fromNs)) && (h.Second >= w.fromNs/1e9 || w.whole)
	if h.Source == recording.SourceTap && w.countNs > 0 {
		inside = w.inside(w.countNs)
	}
	if w.others[h.Node] {
		return
	}
	if inside {
		w.rows++
		w.out.Histogram(h)
	} else if w.shortlyBefore(h.Second * 1e9) {
		h.Source = recording.Before(h.Source)
		w.out.Histogram(h)
	}
}

// Sample implements recording.Sink.
func (w *window) Sample(s recording.Sample) {
	if w.others[s.Subject] {
		return
	}
	if isCount(s) {
		w.countNs = s.TimeNs
	}
	switch {
	case w.earlier(s.TimeNs):
		if w.shortlyBefore(s.TimeNs) && keptBefore(s.Subject) {
			w.holdEarlier()
			w.out.Sample(beforeSample(s))
		}
		w.before.sample(s)
		if c := w.counterOf(s); c != nil {
			*c = counter{base: s.Value, last: s.Value}
		}
	case w.inside(s.TimeNs):
		if c := w.counterOf(s); c != nil {
			s.Value = c.since(s.Value)
		}
		w.rows++
		w.out.Sample(s)
	}
}

// ConnUse implements recording.Sink.
func (w *window) ConnUse(client string, u recording.ConnUse) {
	switch {
	case w.earlier(u.TimeNs):
		w.before.connUse(client, u)
	case w.inside(u.TimeNs):
		w.rows++
		base, known := w.before.uses[client]
		if known && u.Calls < base.Calls { // another connection of this address
			delete(w.before.uses, client)
			known = false
		}
		if known {
			if !w.used[client] {
				w.used[client] = true
				base.TimeNs = max(w.fromNs, w.beganNs)
				w.out.ConnUse(client, useSince(base, base))
			}
			u = useSince(base, u)
		}
		w.out.ConnUse(client, u)
	}
}

// Event implements recording.Sink.
func (w *window) Event(e recording.Event) {
	if w.others[e.Subject] {
		return
	}
	// What came in in the window and happened before is history that the server keeps: LATENCY HISTORY, SLOWLOG.
	history := !w.carrying && w.blockNs >= w.fromNs && w.blockNs < w.toNs && e.TimeNs < w.fromNs
	switch end := e.TimeNs + max(e.DurationNs, 0); {
	case w.earlier(end) && !history:
		if w.shortlyBefore(e.TimeNs) && !slices.Contains(notBefore[:], e.Kind) {
			early := e
			early.Source = recording.Before(e.Source)
			w.out.Event(early)
		}
		w.before.event(e)
		if e.Kind == recording.KindUnseen {
			w.lossesSince(&e).restart(e)
		}
	case w.inside(max(e.TimeNs, w.fromNs)):
		if e.Kind == recording.KindUnseen {
			w.lossesSince(&e).since(&e)
		}
		if e.Kind == recording.KindClose && e.Source == recording.SourceTap {
			delete(w.before.uses, clientOf(e.Detail))
		}
		w.rows++
		w.out.Event(e)
	}
}

// Snapshot implements recording.Sink.
func (w *window) Snapshot(s recording.Snapshot) {
	if w.others[s.Subject] {
		return
	}
	switch {
	case w.earlier(s.TimeNs):
		if w.shortlyBefore(s.TimeNs) && keptBefore(s.Subject) {
			w.holdEarlier()
			w.out.Snapshot(beforeSnapshot(s))
		}
		w.before.snapshot(s)
	case w.inside(s.TimeNs):
		w.rows++
		w.out.Snapshot(s)
	}
}

// SetMeta implements recording.Sink. Metas have no time: those of a block that began in the window or before it count.
func (w *window) SetMeta(key, value string) {
	if w.blockNs >= w.toNs {
		return
	}
	w.metas[key] = value
	if key == recording.MetaNodes && w.nodes != nil {
		var all []string
		_ = json.Unmarshal([]byte(value), &all) // none is one
		clear(w.others)
		for _, n := range all {
			if !w.nodes[n] {
				w.others[n] = true
			}
		}
	}
}

// Profile implements recording.ProfileSink.
func (w *window) Profile(p recording.Profile) {
	if w.inside(p.TimeNs) {
		w.rows++
		w.out.Profile(p)
	}
}

// beginWatch is told of another watch. What the one before knew holds no more.
func (w *window) beginWatch() {
	if w.blockNs >= w.toNs {
		return
	}
	start := w.timeOf(recording.MetaStart)
	w.metas, w.countNs, w.whole = map[string]string{}, 0, w.blockNs >= w.fromNs
	if w.blockNs < w.fromNs || w.rows == 0 {
		w.before.reset()
		clear(w.counters)
		clear(w.lossesOf)
		w.beganNs, w.startNs = w.blockNs, 0
		return
	}
	if w.startNs == 0 {
		w.startNs = max(start, 1)
	}
	clear(w.before.uses) // its connections are counted from zero again
	if gap := w.blockNs - w.lastNs; gap >= gapNs || gap < 0 {
		at := func(ns int64) string { return time.Unix(0, ns).UTC().Format("15:04:05 UTC") }
		b := recording.BlindSpot{
			What: "everything from " + at(w.lastNs) + " to " + at(w.blockNs),
			Why:  "another watch began then, and nothing watched in between",
		}
		if gap < 0 {
			b.What = "how long nothing was watched at " + at(w.blockNs)
			b.Why = "the clock was set back between two watches"
		}
		w.note(recording.KindBlindSpot, recording.Detail(b))
		if gap > 0 {
			w.out.Event(recording.Event{
				TimeNs: w.lastNs, DurationNs: gap, Source: recording.SourceRecording, Subject: recording.SubjectSelf,
				Kind: recording.KindUnwatched,
			})
		}
	}
}

// lostRows is told of rows that were lost.
func (w *window) lostRows(n int64) {
	if w.blockNs >= w.fromNs && w.blockNs < w.toNs {
		w.lost += n
	}
}

// note adds an event about the recording itself.
func (w *window) note(kind, detail string) {
	w.out.Event(recording.Event{
		TimeNs: max(w.fromNs, min(w.blockNs, w.toNs-1)), Source: recording.SourceRecording,
		Subject: recording.SubjectSelf, Kind: kind, Detail: detail,
	})
}

// span is the time that the recording is of: from the begin of the first watch in the window to the end of the last.
func (w *window) span() (startNs, endNs int64) {
	startNs, endNs = max(w.fromNs, w.beganNs), min(w.toNs, w.lastNs)
	if ns := cmp.Or(w.startNs, w.timeOf(recording.MetaStart)); ns < w.toNs {
		startNs = max(startNs, ns)
	}
	if ns := w.timeOf(recording.MetaEnd); ns > startNs {
		endNs = min(endNs, ns)
	}
	return startNs, endNs
}

// timeOf is a time of the last watch, 0 where it has none.
func (w *window) timeOf(key string) int64 {
	ns, _ := strconv.ParseInt(w.metas[key], 10, 64)
	return ns
}

// finish writes what held at the begin, and what the recording is of.
func (w *window) finish() error {
	start, end := w.span()
	if w.rows == 0 || end <= start {
		return ErrNothing
	}
	w.holdAt(start)
	w.leaveOutOthers()
	for k, v := range w.metas {
		switch k {
		case recording.MetaStart, recording.MetaEnd, recording.MetaSchema, recording.MetaDropped,
			recording.MetaThinned:
		default:
			w.out.SetMeta(k, v)
		}
	}
	w.out.SetMeta(recording.MetaStart, strconv.FormatInt(start, 10))
	w.out.SetMeta(recording.MetaEnd, strconv.FormatInt(end, 10))
	if w.lost > 0 {
		w.note(recording.KindUnseen, recording.Detail(recording.Unseen{
			What: "rows of evidence", Count: float64(w.lost), Of: float64(w.lost + w.rows),
			Why: "the disk of the agent's memory was full or did not answer", Enable: "a disk with more room for it",
		}))
	}
	for name := range w.broken {
		w.note(recording.KindBlindSpot, recording.Detail(recording.BlindSpot{
			What: "a part of this time", Why: "the file " + name + " of the agent's memory is damaged",
			Enable: "check the disk",
		}))
	}
	return nil
}

// holdAt writes the values that held at the begin as if they had been read then.
func (w *window) holdAt(ns int64) {
	for k, v := range w.before.series {
		s := recording.Sample{TimeNs: ns, Source: k.source, Subject: k.subject, Name: k.name, Value: v.value}
		if sinceBegin(s) {
			if !alwaysThere[k.name] {
				continue // a watch that begins here would write it once it grows
			}
			s.Value = 0
		}
		w.out.Sample(s)
	}
	for _, v := range w.before.snapshots {
		v.TimeNs = ns
		w.out.Snapshot(v)
	}
	for _, v := range w.before.blind {
		v.TimeNs = ns
		w.out.Event(v)
	}
}
