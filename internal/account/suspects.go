package account

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"slowpath/internal/recording"
)

// Kinds of suspects: what an event loop can have been doing while others waited.
const (
	KindCommand = "command"
	KindFork    = "fork"
	KindExpire  = "expire-cycle"
	KindEvict   = "eviction-cycle"
	KindDefrag  = "active-defrag-cycle"
	KindAOF     = "aof" // write or fsync of the append-only file in the main thread
)

// Suspect is something that the server says it did, with a time window: it ended somewhere in the window. Which calls waited for
// it is decided by the painter.
type Suspect struct {
	Kind       string
	Node       string
	Command    string // KindCommand: upper case, with subcommand
	ArgCount   int
	ArgBytes   int64
	Client     string
	FromNs     int64 // it may have begun as early as this
	ToNs       int64 // and ended as late as this
	DurationNs int64 // of one occurrence
	Count      int
	Text       string // the culprit, for people
	Source     string // slowlog, commandstats, latency, info
	Own        bool   // its own caller waited for all of it
}

// minSuspect is the shortest occurrence worth a suspicion: below, it hides in the usual spread of calls.
const minSuspect = int64(time.Millisecond)

func suspects(rec *recording.Recording, thresholdNs int64) []Suspect {
	var out []Suspect
	for _, e := range rec.EventsOf(recording.SourceServer, "", recording.KindSlowlog) {
		out = append(out, fromSlowlog(e))
	}
	logged := len(out)
	for _, node := range rec.Subjects(recording.SourceServer, "") {
		out = append(out, fromCommandstats(rec, node, out[:logged])...)
		out = append(out, fromInfo(rec, node)...)
	}
	for _, e := range rec.EventsOf(recording.SourceServer, "", recording.KindFork) {
		d := recording.DetailOf[recording.ForkDetail](e)
		out = append(out, Suspect{Kind: KindFork, Node: e.Subject, FromNs: e.TimeNs, ToNs: e.TimeNs + max(d.WindowNs, e.DurationNs),
			DurationNs: e.DurationNs, Count: 1, Source: "info", Text: strings.TrimSpace("fork for " + d.Why)})
	}
	for _, e := range rec.EventsOf(recording.SourceServer, "", recording.KindLatency) {
		if s, ok := fromLatency(e); ok {
			out = append(out, s)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].DurationNs > out[j].DurationNs })
	return out
}

func fromSlowlog(e recording.Event) Suspect {
	d := recording.DetailOf[recording.SlowlogDetail](e)
	s := Suspect{Kind: KindCommand, Node: e.Subject, Command: d.Command, ArgCount: d.ArgCount, ArgBytes: d.ArgBytes, Client: d.Client,
		FromNs: e.TimeNs - e.DurationNs, ToNs: e.TimeNs + d.WindowNs, DurationNs: e.DurationNs, Count: 1, Source: "slowlog"}
	s.Text = s.Command
	if s.Client != "" {
		s.Text += " from " + s.Client
	}
	s.Own = !ConstantTime(d.Command)
	return s
}

// fromCommandstats finds commands whose average between two polls was long. They are used where SLOWLOG does not show the
// command: it is off, its threshold is higher, it was overwritten or forbidden.
func fromCommandstats(rec *recording.Recording, node string, logged []Suspect) []Suspect {
	var out []Suspect
	for _, name := range rec.Names(recording.SourceServer, node, "cmdstat_") {
		if !strings.HasSuffix(name, ".usec") {
			continue
		}
		command := commandName(name)
		calls := rec.Series(recording.SourceServer, node, strings.TrimSuffix(name, "usec")+"calls")
		for _, st := range rec.Series(recording.SourceServer, node, name).Steps() {
			before, _ := calls.At(st.FromNs)
			after, _ := calls.At(st.ToNs)
			n := after - before
			avg := int64(st.Delta * 1000 / max(n, 1))
			if avg < minSuspect || isLogged(logged, node, command, st) {
				continue
			}
			out = append(out, Suspect{Kind: KindCommand, Node: node, Command: command, FromNs: st.FromNs, ToNs: st.ToNs, DurationNs: avg,
				Count: int(n), Source: "commandstats", Text: command, Own: !ConstantTime(command)})
		}
	}
	return out
}

// isLogged reports whether SLOWLOG shows this command around a step already.
func isLogged(logged []Suspect, node, command string, st recording.Step) bool {
	for _, s := range logged {
		if s.Node == node && sameCommand(s.Command, command) && s.FromNs < st.ToNs+int64(time.Second) && s.ToNs > st.FromNs-int64(time.Second) {
			return true
		}
	}
	return false
}

// sameCommand compares "CLUSTER NODES" of SLOWLOG with "CLUSTER" of commandstats before 7.0.
func sameCommand(logged, counted string) bool {
	return logged == counted || strings.HasPrefix(logged, counted+" ")
}

// commandName turns "cmdstat_cluster|nodes.usec" into "CLUSTER NODES".
func commandName(series string) string {
	name := strings.TrimPrefix(series, "cmdstat_")
	name = name[:strings.LastIndexByte(name, '.')]
	return strings.ToUpper(strings.ReplaceAll(name, "|", " "))
}

// fromInfo turns counters of milliseconds into suspects: what the loop spent on a job between two polls.
func fromInfo(rec *recording.Recording, node string) []Suspect {
	var out []Suspect
	for _, c := range []struct{ field, kind, text string }{
		{"expire_cycle_cpu_milliseconds", KindExpire, "active expire cycle"},
		{"total_eviction_exceeded_time", KindEvict, "eviction at maxmemory"},
		{"total_active_defrag_time", KindDefrag, "active defragmentation"},
	} {
		for _, st := range rec.Series(recording.SourceServer, node, c.field).Steps() {
			ns := int64(st.Delta * 1e6)
			if ns < minSuspect {
				continue
			}
			out = append(out, Suspect{Kind: c.kind, Node: node, FromNs: st.FromNs, ToNs: st.ToNs, DurationNs: ns, Count: 1, Source: "info",
				Text: fmt.Sprintf("%s (%.0f ms in this second)", c.text, st.Delta)})
		}
	}
	return out
}

func fromLatency(e recording.Event) (Suspect, bool) {
	d := recording.DetailOf[recording.LatencyDetail](e)
	s := Suspect{Node: e.Subject, FromNs: e.TimeNs - e.DurationNs, ToNs: e.TimeNs + d.WindowNs, DurationNs: e.DurationNs, Count: 1, Source: "latency",
		Text: d.Event + " (LATENCY)"}
	switch {
	case d.Event == "fork":
		s.Kind = KindFork
	case d.Event == "expire-cycle" || d.Event == "expire-del":
		s.Kind = KindExpire
	case strings.HasPrefix(d.Event, "eviction"):
		s.Kind = KindEvict
	case strings.HasPrefix(d.Event, "aof-"):
		s.Kind = KindAOF
	case d.Event == "active-defrag-cycle":
		s.Kind = KindDefrag
	default:
		return s, false
	}
	return s, true
}
