package recording

import (
	"cmp"
	"database/sql"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"
)

// bounds are how much of a recording is read to be judged. Of calls and of kinds of events that have more rows, one in
// 2, 4, … is read. All that is rare is read. What is left out is counted and said in a blind spot.
type bounds struct {
	calls  int64 // of users, that have a reply; the same of calls of the probe that are not slow
	events int64 // of each kind, but those that begin and end connections
	// conns are all events that begin and end connections: of their patterns (bursts, pools, one after the other) a
	// part says little
	conns int64
	// histograms of the tap and the probe are added up when they are read if there are more
	histograms int64
}

// judged takes 270 MB of memory for a day with 1 million slow calls and 1 million connections, and 220 MB for 676 000
// events of connections within 15 s, which are read whole.
var judged = bounds{calls: 50_000, events: 50_000, conns: 750_000, histograms: 20_000}

const (
	// slowest is how many of the slowest calls are read in any case: a verdict shows some.
	slowest = 10
	// together: calls are chosen in groups of so many that were recorded one after the other, as those of a pipeline
	// are.
	together = 16
	// isUsers are the calls of which a part is read.
	isUsers = "source = '" + SourceTap + "' AND error = ''"
)

// selection is what is read of a large recording. A level is such that one row in 2^level is read; 0: all.
type selection struct {
	bounds
	users, probes int64 // rows
	ofUsers       int   // level
	ofProbes      int   // level
	isProbe       string
	slowest       []int64          // ids of calls
	events        int64            // rows
	ofKind        map[string]int   // levels
	ofConns       int              // level
	sumsOf        map[string]*sums // by source; nil: histograms are kept
	read          map[int64]bool   // ids of calls; nil: all
	slow          [][2]int64       // when the calls that are read were slow: begin and end, ordered and disjoint
}

// levelOf is the level at which at most so many of n rows are read.
func levelOf(n, most int64) int {
	if n <= most {
		return 0
	}
	return bits.Len64(uint64((n - 1) / most))
}

// oneIn is a condition that is true for one in 2^level of the values of an expression of SQL, spread evenly.
func oneIn(level int, expr string) string {
	return fmt.Sprintf("((%s) * 2654435761 >> 16) & %d = 0", expr, 1<<level-1)
}

// chosenCalls is the condition for ids of calls.
func chosenCalls(level int, id string) string {
	return oneIn(level, fmt.Sprintf("%s / %d", id, together))
}

// selectRows finds out which rows are read.
func (x *reader) selectRows(b bounds) error {
	s := &selection{bounds: b, ofKind: map[string]int{}}
	if err := x.selectCalls(s); err != nil {
		return err
	}
	if err := x.selectEvents(s); err != nil {
		return err
	}
	last, err := x.lastRow(histogramTable)
	if err != nil {
		return err
	}
	if last > b.histograms {
		s.sumsOf = map[string]*sums{SourceTap: {}, SourceProbe: {}}
	}
	x.only = s
	return nil
}

// lastRow is the last rowid of a table: it has not more rows, unless somebody made it.
func (x *reader) lastRow(t *table) (n int64, err error) {
	err = x.db.QueryRow("SELECT coalesce(max(rowid), 0) FROM " + t.name).Scan(&n)
	return n, err
}

func (x *reader) selectCalls(s *selection) error {
	if last, err := x.lastRow(callTable); err != nil || last <= s.bounds.calls {
		return err
	}
	slowNs := autoSlowNs
	if d, err := time.ParseDuration(x.rec.Meta[MetaSlow]); err == nil && d > 0 {
		slowNs = int64(d)
	}
	s.isProbe = fmt.Sprintf("source = '%s' AND error = '' AND end_ns - intended_ns < %d", SourceProbe, slowNs)
	err := x.db.QueryRow("SELECT coalesce(sum("+isUsers+"), 0), coalesce(sum("+s.isProbe+"), 0) FROM call NOT INDEXED").
		Scan(&s.users, &s.probes)
	s.ofUsers, s.ofProbes = levelOf(s.users, s.bounds.calls), levelOf(s.probes, s.bounds.calls)
	if err != nil || s.ofUsers == 0 {
		return err
	}
	return each(x.db, "SELECT id FROM call NOT INDEXED WHERE "+isUsers+" ORDER BY end_ns - intended_ns DESC, id LIMIT "+
		fmt.Sprint(slowest), func(rows *sql.Rows) error {
		var id int64
		err := rows.Scan(&id)
		s.slowest = append(s.slowest, id)
		return err
	})
}

// selectEvents estimates how many events of each kind there are, from some of them.
func (x *reader) selectEvents(s *selection) error {
	const looks = 4096
	last, err := x.lastRow(eventTable)
	if err != nil || last <= s.bounds.events {
		return err
	}
	if err := x.db.QueryRow("SELECT count(*) FROM event NOT INDEXED").Scan(&s.events); err != nil {
		return err
	}
	of := map[string]int64{}
	for i := range int64(looks) {
		var kind string
		err := x.db.QueryRow("SELECT kind FROM event WHERE rowid >= ? ORDER BY rowid LIMIT 1", last/looks*i).Scan(&kind)
		if err != nil {
			return err
		}
		of[kind]++
	}
	conns := int64(0)
	for kind, n := range of {
		switch rows := s.events / looks * n; {
		case ofConns(kind):
			conns += rows
		case known[kind] && rows > s.bounds.events:
			s.ofKind[kind] = levelOf(rows, s.bounds.events)
		}
	}
	s.ofConns = levelOf(conns, s.bounds.conns) // one for all: what is kept of a connection is whole
	return nil
}

// known are the other kinds of events that come often on a busy server, and whose rows stand for each other.
var known = map[string]bool{
	KindActivity: true, KindRunQueue: true, KindThrottled: true,
	KindBlocked: true, KindBusy: true, KindPoll: true, KindTCPInfo: true, KindRetransmit: true, KindAcknowledged: true,
	KindInternal: true, KindBlockingCommand: true, KindOtherNodes: true, KindCollection: true, KindDNSQuery: true,
	KindServed: true,
}

// where is the condition for the rows of a table that are read; empty: all.
func (x *reader) where(t *table) string {
	s := x.only
	switch {
	case s == nil:
	case t == callTable && s.ofUsers+s.ofProbes > 0:
		return fmt.Sprintf("CASE WHEN %s THEN %s OR %s WHEN %s THEN %s ELSE 1 END", isUsers,
			chosenCalls(s.ofUsers, "id"), amongIDs("id", s.slowest), s.isProbe, chosenCalls(s.ofProbes, "id"))
	case t == segmentTable && s.ofUsers > 0:
		level := s.ofUsers
		if s.ofProbes > 0 {
			level = min(level, s.ofProbes)
		}
		return chosenCalls(level, "call_id") + " OR " + amongIDs("call_id", x.apart(level))
	case t == eventTable && s.ofConns > 0:
		// the last digits of the port of the client, with whose address the detail begins
		client := `CAST(substr(detail, instr(substr(detail, 1, 80), '",') - 4, 4) AS INTEGER)`
		return fmt.Sprintf("CASE WHEN kind IN ('%s', '%s', '%s') THEN %s ELSE 1 END", KindOpen, KindHandshake,
			KindClose, oneIn(s.ofConns, client))
	}
	return ""
}

// apart are the calls that are read and not in the groups that are chosen at a level.
func (x *reader) apart(level int) (ids []int64) {
	for _, c := range x.rec.Calls {
		if c.ID/together*2654435761>>16&(1<<level-1) != 0 {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

func amongIDs(column string, ids []int64) string {
	var b strings.Builder
	for i, id := range ids {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprint(&b, id)
	}
	return column + " IN (" + b.String() + ")"
}

// markRead takes the calls that are read. What happened while they were slow is read whole.
func (s *selection) markRead(calls []Call) {
	if s.ofUsers+s.ofProbes > 0 {
		s.read = map[int64]bool{}
	}
	for _, c := range calls {
		if s.read != nil {
			s.read[c.ID] = true
		}
		if c.EndNs-c.IntendedNs >= autoSlowNs || c.Source == SourceTap {
			s.slow = append(s.slow, [2]int64{c.IntendedNs, c.EndNs})
		}
	}
	slices.SortFunc(s.slow, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
	out := s.slow[:0]
	for _, w := range s.slow {
		if n := len(out); n > 0 && w[0] <= out[n-1][1] {
			out[n-1][1] = max(out[n-1][1], w[1])
		} else {
			out = append(out, w)
		}
	}
	s.slow = out
}

// sums adds a histogram to those of its path. False: it is kept.
func (s *selection) sums(h Histogram) bool {
	if s == nil || s.sumsOf[h.Source] == nil {
		return false
	}
	s.sumsOf[h.Source].add(h)
	return true
}

// reads reports whether a call is read.
func (s *selection) reads(call int64) bool { return s == nil || s.read == nil || s.read[call] }

// takes reports whether an event is read that the condition did not leave out.
func (s *selection) takes(e *Event, nth uint64) bool {
	if s == nil {
		return true
	}
	level := s.ofKind[e.Kind]
	if level == 0 {
		return true
	}
	if bits.Reverse64(nth) < threshold(level) {
		return true
	}
	i, _ := slices.BinarySearchFunc(s.slow, e.TimeNs, func(w [2]int64, ns int64) int { return cmp.Compare(w[1], ns) })
	return i < len(s.slow) && s.slow[i][0] <= e.TimeNs+e.DurationNs
}

// noteSelection says what was left out.
func (x *reader) noteSelection() {
	s := x.only
	if s == nil {
		return
	}
	if s.sumsOf != nil {
		x.rec.sums, x.rec.summed = map[string][]HistogramSum{}, true
		for source, all := range s.sumsOf {
			x.rec.sums[source] = all.done()
		}
	}
	var users, probes int64
	for _, c := range x.rec.Calls {
		switch {
		case c.Error != "":
		case c.Source == SourceTap:
			users++
		case c.Source == SourceProbe:
			probes++
		}
	}
	if s.ofUsers > 0 {
		x.unread(slowCalls+" one by one", s.users-users, s.users, true)
		x.rec.standFor, x.rec.apart = 1<<s.ofUsers, s.slowest
	}
	if s.ofProbes > 0 {
		x.rec.Meta[MetaThinned] = "1"
		x.unread("calls of the probe one by one", max(s.probes-probes, 0), s.probes, true)
	}
	var kinds []string
	for kind := range s.ofKind {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	left := s.events - int64(x.rec.EventCount())
	if len(kinds) > 0 {
		x.unread("events one by one ("+strings.Join(kinds, ", ")+")", left, s.events, true)
	}
	if s.ofConns > 0 {
		x.rec.Meta[MetaThinned] = "1"
		x.unread("connections one by one", left, s.events, false)
	}
}

// unread says how many rows were left out. counted: what rests on them is counted elsewhere, or scaled up.
func (x *reader) unread(what string, n, of int64, counted bool) {
	_, end := x.rec.Window()
	x.rec.Events = append(x.rec.Events, Event{
		TimeNs: end, Source: SourceRecording, Subject: SubjectSelf, Kind: KindUnseen, Detail: Detail(Unseen{
			What: what, Count: float64(n), Of: float64(of), Counted: counted,
			Why:    "the recording is larger than what is judged at once: a part drawn at random stands for all",
			Enable: "record for a shorter time",
		}),
	})
}
