package account

import (
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
	KindAOF     = "aof"     // write or fsync of the append-only file in the main thread
	KindFree    = "free"    // freeing a big key that expired or was evicted
	KindBulk    = "bulk-io" // copying big arguments or replies
)

// Suspect is something that the server says it did, with a time window: it ended somewhere in the window. Which calls
// waited for it is decided by the painter.
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
	Source     string // slowlog, commandstats, latency, info; tap
	Own        bool   // its own caller waited for all of it
	// Merged: the kernel source saw the same thing, and a suspect of its own stands for it.
	Merged bool
	// Of the kernel source: FromNs and ToNs are exact. Process is the caller, where it runs on this host; Calls are the
	// commands of the read, of which Command is the first or the one that the server's record names; Told is the Source
	// of that record.
	Process string
	Calls   int
	OnCPUNs int64
	Told    string
	sends   bool // the time went into one system call that sends
	// Busy and Stopped: the host saw the main thread on the CPU, kept from it, for at least half of DurationNs in a row
	// within the window. Both are false where nobody watched; busy stretches below 10 ms are not seen.
	Busy, Stopped bool
}

// minSuspect is the shortest occurrence worth a suspicion: below, it hides in the usual spread of calls.
const minSuspect = int64(time.Millisecond)

func suspects(rec *recording.Recording, nodes map[string]*tapped) []Suspect {
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
		out = append(out, Suspect{
			Kind: KindFork, Node: e.Subject, FromNs: e.TimeNs, ToNs: e.TimeNs + max(d.WindowNs,
				e.DurationNs),
			DurationNs: e.DurationNs, Count: 1, Source: "info", Text: strings.TrimSpace("fork for " + d.Why),
		})
	}
	for _, e := range rec.EventsOf(recording.SourceServer, "", recording.KindLatency) {
		if s, ok := fromLatency(e); ok {
			out = append(out, s)
		}
	}
	witness(rec, out)
	out = append(out, fromWork(rec, nodes, out)...)
	sort.SliceStable(out, func(i, j int) bool { return out[i].DurationNs > out[j].DurationNs })
	return out
}

func fromSlowlog(e recording.Event) Suspect {
	d := recording.DetailOf[recording.SlowlogDetail](e)
	s := Suspect{
		Kind: KindCommand, Node: e.Subject, Command: d.Command, ArgCount: d.ArgCount, ArgBytes: d.ArgBytes,
		Client: d.Client,
		FromNs: e.TimeNs - e.DurationNs, ToNs: e.TimeNs + d.WindowNs, DurationNs: e.DurationNs, Count: 1,
		Source: "slowlog",
	}
	s.Text = s.Command
	if s.Client != "" {
		s.Text += " from " + s.Client
	}
	s.Own = !ConstantTime(d.Command)
	return s
}

func fromLatency(e recording.Event) (Suspect, bool) {
	d := recording.DetailOf[recording.LatencyDetail](e)
	s := Suspect{
		Node: e.Subject, FromNs: e.TimeNs - e.DurationNs, ToNs: e.TimeNs + d.WindowNs,
		DurationNs: e.DurationNs, Count: 1, Source: "latency",
		Text: d.Event + " (LATENCY)",
	}
	switch {
	case d.Event == "fork":
		s.Kind = KindFork
	case d.Event == "expire-del":
		s.Kind, s.Text = KindFree, "freeing an expired key (LATENCY expire-del)"
	case d.Event == "eviction-del":
		s.Kind, s.Text = KindFree, "freeing an evicted key (LATENCY eviction-del)"
	case d.Event == "expire-cycle":
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
