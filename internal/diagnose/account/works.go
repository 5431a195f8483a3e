package account

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"time"

	"slowpath/internal/recording"
)

// Kinds of suspects that only the kernel source tells.
const (
	KindPipeline = "pipeline" // many commands of one read, each short
	KindLoop     = "loop"     // the event loop's own work, of which nobody says what it was
	KindWatch    = "watch"    // a question of slowpath itself
)

// cheapNs is what a command of constant time takes at most, reading and writing the socket included: 1 to 10 µs on
// 7.0.15, and twice that on a slow CPU.
const cheapNs = int64(20 * time.Microsecond)

// teller finds for each long stretch of work that the kernel source saw what the server's own records say of it: both
// tell of the same thing, and it must be one suspect.
type teller struct {
	rec    *recording.Recording
	told   []Suspect // of the server's records
	left   []int64   // of their time
	at     *timeIndex
	own    map[string]bool
	polled map[string]bool
}

// fromWork makes suspects of what the main threads did for a millisecond and more. What it finds in told is marked
// there.
func fromWork(rec *recording.Recording, nodes map[string]*tapped, told []Suspect) []Suspect {
	t := &teller{rec: rec, told: told, own: ownAddresses(rec), polled: map[string]bool{}}
	for _, s := range told {
		t.left = append(t.left, s.DurationNs*int64(max(s.Count, 1)))
	}
	t.at = newTimeIndex(len(told), func(i int) (int64, int64) { return told[i].FromNs, told[i].ToNs })
	var out []Suspect
	for _, node := range rec.Nodes() {
		if nodes[node] == nil {
			continue
		}
		t.polled[node] = len(rec.EventsOf(recording.SourceServer, node, recording.KindPoll)) > 0
		for _, w := range nodes[node].works {
			if w.OnCPUNs >= minSuspect {
				out = append(out, newWork(w.Event, w.WorkDetail))
			}
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].DurationNs > out[j].DurationNs })
	for i := range out {
		t.name(&out[i])
	}
	t.settle(out)
	return out
}

func newWork(e recording.Event, d recording.WorkDetail) Suspect {
	s := Suspect{
		Kind: KindCommand, Node: e.Subject, Command: d.Op, ArgCount: d.Args, ArgBytes: d.Bytes,
		Client: d.Client, Process: d.Process,
		FromNs: e.TimeNs, ToNs: e.TimeNs + e.DurationNs, DurationNs: e.DurationNs, OnCPUNs: d.OnCPUNs, Count: 1,
		Calls: d.Calls, Source: recording.SourceTap,
		Text: workText(d), Busy: d.OnCPUNs >= e.DurationNs/2 || d.OnCPUNs >= SeenBusyNs,
		Stopped: d.OnCPUNs < e.DurationNs/2, sends: d.Sends,
	}
	if d.Op == "MULTI" {
		s.Command, s.Text = "EXEC", strings.Replace(s.Text, "MULTI", "MULTI … EXEC", 1)
	}
	return s
}

// workText names what a thread did, for people.
func workText(d recording.WorkDetail) string {
	who := d.Client
	if d.Process != "" {
		who += " (" + d.Process + ")"
	}
	switch {
	case d.Sends:
		return "sending a reply to " + who
	case d.Client == "":
		return "its own work"
	case d.Calls > 1:
		return fmt.Sprintf("%s and %d more from %s", d.Op, d.Calls-1, who)
	case d.Op == "":
		return "a request from " + who
	}
	return d.Op + " from " + who
}

func named(comm string, pid int) string { return fmt.Sprintf("%s[%d]", comm, pid) }

// ownAddresses are the ends of slowpath's own connections.
func ownAddresses(rec *recording.Recording) map[string]bool {
	own := map[string]bool{}
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
				own[c.Addr] = true
			}
		}
	}
	return own
}

// name says what a stretch of work was. The kernel source knows the exact time and the connection; which of several
// commands of a read it was, and what the loop did after it, the server knows.
func (t *teller) name(w *Suspect) {
	if t.own[w.Client] && w.Client != "" {
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
	if i := t.command(*w); i >= 0 {
		t.adopt(w, i)
		return
	}
	each := w.OnCPUNs / int64(max(w.Calls, 1))
	switch {
	case w.Command == "EXEC", w.Calls == 1 && w.Command != "" && (!ConstantTime(w.Command) || !t.polled[w.Node] ||
		t.counted(*w)):
		return
	case w.Calls > 1 && each <= cheapNs:
		w.Kind = KindPipeline
		return
	}
	if i := t.job(*w); i >= 0 {
		w.Kind, w.Told = t.told[i].Kind, t.told[i].Source
		w.Text = t.told[i].Text
		t.left[i] -= w.OnCPUNs
		return
	}
	switch {
	case w.Calls > 1:
		w.Kind = KindPipeline
	default:
		// The server's own clock says that this command took no such time: it was what the loop did after it.
		w.Kind, w.Text = KindLoop, "the event loop's own work after "+w.Text
	}
}

// command finds the server's record of a command: its log before its counters, and of those the nearest in length.
func (t *teller) command(w Suspect) int {
	best, bestRank := -1, int64(1<<62)
	for _, i := range t.at.touching(w.FromNs, w.ToNs) {
		s := t.told[i]
		if s.Kind != KindCommand || !t.fits(w, s) || t.left[i] <= 0 {
			continue
		}
		rank := max(w.DurationNs-s.DurationNs, s.DurationNs-w.DurationNs)
		if s.Source != "slowlog" {
			rank += int64(time.Hour)
		}
		if rank < bestRank {
			best, bestRank = i, rank
		}
	}
	return best
}

// fits reports whether a record of a command can be that of a stretch of work.
func (t *teller) fits(w, s Suspect) bool {
	if s.Node != w.Node || s.FromNs > w.ToNs || s.ToNs < w.FromNs || s.Client != "" && w.Client != "" &&
		s.Client != w.Client {
		return false
	}
	if w.Command != "" && w.Command != "EXEC" && (s.Command == w.Command || sameCommand(s.Command, w.Command) ||
		sameCommand(w.Command, s.Command)) && w.Calls <= 1 {
		return s.DurationNs*10 >= w.OnCPUNs*3
	}
	// Of a read with several commands only the first is known, of an encrypted one none: the length tells.
	return (w.Calls != 1 || w.Command == "EXEC") && s.DurationNs*2 >= w.OnCPUNs &&
		s.DurationNs*10 <= w.DurationNs*11+int64(2*time.Millisecond)
}

// adopt takes over what the server's record says.
func (t *teller) adopt(w *Suspect, i int) {
	s := t.told[i]
	w.Kind, w.Told, w.Own = KindCommand, s.Source, s.Own && s.Source == "slowlog"
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
		t.left[i] -= s.DurationNs
	} else {
		t.left[i] = 0
	}
	for _, j := range t.at.touching(w.FromNs, w.ToNs) { // the same command by other counters
		o := t.told[j]
		if j != i && o.Kind == KindCommand && o.Source != "slowlog" && o.Command == s.Command && t.fits(*w, o) &&
			t.left[j] > 0 {
			t.left[j] -= max(o.DurationNs, w.OnCPUNs)
		}
	}
}

// counted reports whether commandstats counts about as much for a rare command of constant time as the work took: it
// freed something big.
func (t *teller) counted(w Suspect) bool {
	if !rareFree[w.Command] {
		return false
	}
	usec := 0.0
	name := "cmdstat_" + strings.ToLower(w.Command) + ".usec"
	for _, st := range t.rec.Series(recording.SourceServer, w.Node, name).Steps() {
		if st.ToNs > w.FromNs && st.FromNs < w.ToNs {
			usec += st.Delta
		}
	}
	return usec*1000 >= float64(w.OnCPUNs)/2
}

// jobRank orders what a loop may have done: first what the server tells one by one, then what it only counts.
var jobRank = map[string]int{
	KindFork: 0, KindAOF: 1, KindFree: 2, KindEvict: 3, KindExpire: 4, KindDefrag: 5,
	KindBulk: 6,
}

// job finds which of the loop's jobs a stretch of work was: one that the server timed alike, or one of which its
// counters have enough.
func (t *teller) job(w Suspect) int {
	best, bestRank := -1, 1<<30
	for _, i := range t.at.touching(w.FromNs, w.ToNs) {
		s := t.told[i]
		rank, is := jobRank[s.Kind]
		if !is || s.Node != w.Node || s.FromNs > w.ToNs || s.ToNs < w.FromNs || t.left[i]*2 < w.OnCPUNs {
			continue
		}
		if s.Kind == KindFork && s.DurationNs > w.DurationNs*5/4+int64(time.Millisecond) {
			continue
		}
		if s.Source == "latency" && s.DurationNs <= w.DurationNs*3/2 {
			rank -= 10
		}
		if s.Kind == KindEvict && reading[w.Command] {
			rank = 8 // room is made before writes
		}
		if rank < bestRank {
			best, bestRank = i, rank
		}
	}
	return best
}

var reading = set("GET MGET HGET HMGET EXISTS TTL PTTL TYPE STRLEN HLEN LLEN SCARD ZCARD ZSCORE SISMEMBER PING")

// settle takes from the server's records what the kernel source saw too. A record of one thing whose window holds work
// of that length is told already, whichever work it was.
func (t *teller) settle(works []Suspect) {
	at := newTimeIndex(len(works), func(i int) (int64, int64) { return works[i].FromNs, works[i].ToNs })
	for i := range t.told {
		s := &t.told[i]
		each := max(s.DurationNs, 1)
		switch {
		case t.left[i] < min(minSuspect, each):
			s.Merged = true
		case s.Count > 1 && t.left[i] < each*int64(s.Count):
			s.Count = max(1, int(t.left[i]/each))
		case s.Count <= 1 && t.left[i] < s.DurationNs:
			s.DurationNs = t.left[i]
		case s.Source == "slowlog" || s.Source == "latency" || s.Kind == KindFork || s.Source == "commandstats" &&
			s.DurationNs >= minSuspect:
			for _, k := range at.touching(s.FromNs, s.ToNs) {
				if w := works[k]; w.Node == s.Node && w.FromNs < s.ToNs && w.ToNs > s.FromNs &&
					w.DurationNs*2 >= s.DurationNs {
					s.Merged = true
					break
				}
			}
		}
	}
}
