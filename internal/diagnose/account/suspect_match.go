package account

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// matcher finds for each long stretch of work that the tap saw the server's own record of it: both show the same thing,
// and it must be one suspect. The tap has the exact time and the connection; the server has which of several commands
// of a read it was, and what the loop did after it.
type matcher struct {
	rec     *recording.Recording
	records []Suspect       // by the server's records
	leftNs  []int64         // of their time, what no work is matched with yet
	index   *timeIndex      // of records
	self    map[string]bool // addresses of slowpath's own connections
	polled  map[string]bool // nodes whose INFO was polled
}

// matchRecords says of each work what it was, and marks in records what the tap saw too.
func matchRecords(rec *recording.Recording, works, records []Suspect) {
	m := &matcher{rec: rec, records: records, self: selfAddresses(rec), polled: map[string]bool{}}
	for _, s := range records {
		m.leftNs = append(m.leftNs, s.DurationNs*int64(max(s.Count, 1)))
	}
	m.index = newTimeIndex(len(records), func(i int) (int64, int64) { return records[i].FromNs, records[i].ToNs })
	for _, node := range rec.Nodes() {
		m.polled[node] = len(rec.EventsOf(recording.SourceServer, node, recording.KindPoll)) > 0
	}
	for i := range works {
		m.classify(&works[i])
	}
	m.mergeRecords(works)
}

// selfAddresses are this end's addresses of slowpath's own connections.
func selfAddresses(rec *recording.Recording) map[string]bool {
	self := map[string]bool{}
	for _, s := range rec.Snapshots {
		if s.Source != recording.SourceServer || s.Name != "clients" {
			continue
		}
		for _, line := range strings.Split(s.Body, "\n") {
			var c struct {
				Addr string `json:"addr"`
				Self bool   `json:"self"`
			}
			if json.Unmarshal([]byte(line), &c) == nil && c.Self {
				self[c.Addr] = true
			}
		}
	}
	return self
}

// cheapNs is what a command of constant time takes at most, reading and writing the socket included: 1 to 10 µs on
// 7.0.15, and twice that on a slow CPU.
// Bound: noted, on 7.0.15, twice the upper end.
const cheapNs = int64(20 * time.Microsecond)

// classify says what a stretch of work was.
func (m *matcher) classify(w *Suspect) {
	if m.self[w.Client] && w.Client != "" {
		w.Kind, w.Text = KindWatch, w.Text+", slowpath itself"
		return
	}
	if w.sends {
		w.Kind = KindBulk
		if w.ArgBytes < bulkCommand {
			w.Kind = KindLoop
		}
		return
	}
	if i := m.command(*w); i >= 0 {
		m.adopt(w, i)
		return
	}
	if w.Command == "EXEC" || w.Calls == 1 && w.Command != "" && m.canTake(*w) {
		return
	}
	if w.Calls > 1 && w.OnCPUNs/int64(w.Calls) <= cheapNs {
		w.Kind = KindPipeline
		return
	}
	if i := m.job(*w); i >= 0 {
		w.Kind, w.Record, w.Text = m.records[i].Kind, m.records[i].Source, m.records[i].Text
		m.leftNs[i] -= w.OnCPUNs
		return
	}
	if w.Calls > 1 {
		w.Kind = KindPipeline
		return
	}
	// By the server's own clock this command took no such time: it was what the loop did after it.
	w.Kind, w.Text = KindLoop, "the event loop's own work after "+w.Text
}

// canTake reports whether a command can have taken that long, though no record shows it.
func (m *matcher) canTake(w Suspect) bool {
	return !ConstantTime(w.Command) || !m.polled[w.Node] || m.freedByStats(w)
}

// command finds the server's record of a command: its log before its counters, and of those the nearest in length.
func (m *matcher) command(w Suspect) int {
	best, bestRank := -1, int64(1<<62)
	for _, i := range m.index.touching(w.FromNs, w.ToNs) {
		s := &m.records[i]
		if s.Kind != KindCommand || m.leftNs[i] <= 0 || !fits(&w, s) {
			continue
		}
		rank := max(w.DurationNs-s.DurationNs, s.DurationNs-w.DurationNs)
		if s.Source != bySlowlog {
			rank += int64(time.Hour)
		}
		if rank < bestRank {
			best, bestRank = i, rank
		}
	}
	return best
}

// noLonger reports whether a record is no longer than a stretch of work, as far as two clocks agree.
func noLonger(s, w *Suspect) bool {
	return degree.NearlyAll*float64(s.DurationNs) <= float64(w.DurationNs)
}

// fits reports whether a record of a command at the time of a stretch of work can be that of it. The server times a
// command without reading and writing the socket.
func fits(w, s *Suspect) bool {
	if s.Node != w.Node || s.Client != "" && w.Client != "" && s.Client != w.Client {
		return false
	}
	if w.Command != "" && w.Command != "EXEC" && sameOp(s.Command, w.Command) && w.Calls <= 1 {
		return s.DurationNs*degree.Several >= w.OnCPUNs
	}
	// Of a read with several commands only the first is known, of an encrypted one none: the length decides.
	return (w.Calls != 1 || w.Command == "EXEC") && s.DurationNs*2 >= w.OnCPUNs && noLonger(s, w)
}

// adopt takes over what the server's record says.
func (m *matcher) adopt(w *Suspect, i int) {
	s := m.records[i]
	w.Kind, w.Record, w.Own = KindCommand, s.Source, s.Own && s.Source == bySlowlog
	if s.Command != w.Command && !sameCommand(w.Command, s.Command) {
		w.Command, w.Text = s.Command, s.Command
		if w.Client != "" {
			w.Text += " from " + w.Client
		}
		if w.Process != "" {
			w.Text += " (" + w.Process + ")"
		}
	}
	w.ArgCount, w.ArgBytes = max(w.ArgCount, s.ArgCount), max(w.ArgBytes, s.ArgBytes)
	if s.Count > 1 {
		m.leftNs[i] -= s.DurationNs
	} else {
		m.leftNs[i] = 0
	}
	for _, j := range m.index.touching(w.FromNs, w.ToNs) { // the same command by other counters
		o := &m.records[j]
		if j != i && o.Kind == KindCommand && o.Source != bySlowlog && o.Command == s.Command && m.leftNs[j] > 0 &&
			fits(w, o) {
			m.leftNs[j] -= max(o.DurationNs, w.OnCPUNs)
		}
	}
}

// freedByStats reports whether commandstats counts about as much for a rare command of constant time as the work took:
// it freed something big.
func (m *matcher) freedByStats(w Suspect) bool {
	if !rareFree[w.Command] {
		return false
	}
	usec := 0.0
	time := series.CommandUsec(series.InCommandstats(w.Command))
	for _, st := range m.rec.Of(time, w.Node).Steps() {
		if st.ToNs > w.FromNs && st.FromNs < w.ToNs {
			usec += st.Delta
		}
	}
	return time.Ns(usec) >= float64(w.OnCPUNs)/2
}

// jobRank orders what a loop may have done: first what the server records one by one, then what it only counts.
var jobRank = map[string]int{
	KindFork: 0, KindAOF: 1, KindFree: 2, KindEvict: 3, KindExpire: 4, KindDefrag: 5,
	KindBulk: 6,
}

// job finds which of the loop's jobs a stretch of work was: one that the server timed alike, or one of which its
// counters have enough.
func (m *matcher) job(w Suspect) int {
	best, bestRank := -1, 1<<30
	for _, i := range m.index.touching(w.FromNs, w.ToNs) {
		s := &m.records[i]
		rank, is := jobRank[s.Kind]
		if !is || s.Node != w.Node || m.leftNs[i]*2 < w.OnCPUNs || s.Kind == KindFork && !noLonger(s, &w) {
			continue
		}
		if s.Source == byLatency && noLonger(s, &w) {
			rank -= 10
		}
		if s.Kind == KindEvict && readsOne[w.Command] {
			rank = 8 // the server evicts before writes
		}
		if rank < bestRank {
			best, bestRank = i, rank
		}
	}
	return best
}

// mergeRecords takes from the server's records what the tap saw too.
func (m *matcher) mergeRecords(works []Suspect) {
	at := newTimeIndex(len(works), func(i int) (int64, int64) { return works[i].FromNs, works[i].ToNs })
	for i := range m.records {
		s := &m.records[i]
		each, left := max(s.DurationNs, 1), m.leftNs[i]
		switch {
		case left < min(MinSuspectNs, each):
			s.Merged = true
		case s.Count > 1 && left < each*int64(s.Count):
			s.Count = max(1, int(left/each))
		case s.Count <= 1 && left < s.DurationNs:
			s.DurationNs = left
		default:
			s.Merged = timesOne(s) && holdsWork(s, works, at)
		}
	}
}

// timesOne reports whether a record has the time of one occurrence.
func timesOne(s *Suspect) bool {
	return s.Source == bySlowlog || s.Source == byLatency || s.Kind == KindFork ||
		s.Source == byCommandstats && s.DurationNs >= MinSuspectNs
}

// holdsWork reports whether the window of a record holds work of its length: then the tap saw it, whichever work it
// was.
func holdsWork(s *Suspect, works []Suspect, at *timeIndex) bool {
	return slices.ContainsFunc(at.touching(s.FromNs, s.ToNs), func(k int) bool {
		return works[k].Node == s.Node && works[k].DurationNs*2 >= s.DurationNs
	})
}
