package account

import (
	"sort"

	"slowpath/internal/diagnose/degree"
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

// Kinds of suspects that only the tap sees.
const (
	KindPipeline = "pipeline" // many commands of one read, each short
	KindLoop     = "loop"     // the event loop's own work, of unknown kind
	KindWatch    = "watch"    // a command of slowpath itself
)

// Suspect is something that the server did that calls may have waited for, with a time window: it ended somewhere in
// the window. Which calls waited for it is decided in layers.go.
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
	// Merged: the tap saw the same thing, and its suspect replaces this one.
	Merged bool
	// Of the tap: FromNs and ToNs are exact. Process is the caller, where it runs on this host; Calls are the commands
	// of the read, of which Command is the first or the one that the server's record names; Told is the Source of that
	// record, empty without one.
	Process string
	Calls   int
	OnCPUNs int64
	Record  string
	sends   bool // the time went into one system call that sends
	// Busy and Stopped: the host saw the main thread on the CPU, kept from it, for at least half of DurationNs in a row
	// within the window. Both are false where nobody watched; busy stretches below 10 ms are not seen.
	Busy, Stopped bool
}

// Sources of suspects that are the server's own records.
const (
	bySlowlog      = "slowlog"
	byCommandstats = "commandstats"
	byLatency      = "latency"
	byInfo         = "info"
)

// MinSuspectNs is the shortest occurrence that becomes a suspect: several in a row make a slow call.
const MinSuspectNs = int64(Noticed / degree.Several)

// findSuspects lists the suspects, longest first.
func findSuspects(rec *recording.Recording, threads map[string]*mainThread) []Suspect {
	out := slowlogSuspects(rec)
	logged := out[:len(out):len(out)]
	for _, node := range rec.Subjects(recording.SourceServer, "") {
		out = append(out, commandstatsSuspects(rec, node, logged)...)
		out = append(out, infoSuspects(rec, node)...)
	}
	out = append(out, forkSuspects(rec)...)
	out = append(out, latencySuspects(rec)...)
	checkWithHost(rec, out)
	works := workSuspects(rec, threads)
	matchRecords(rec, works, out)
	out = append(out, works...)
	sort.SliceStable(out, func(i, j int) bool { return out[i].DurationNs > out[j].DurationNs })
	return out
}

// state is the server's state during it.
func (s Suspect) state() string {
	if s.Kind == KindFork || s.Kind == KindAOF {
		return Blocked
	}
	return Busy
}

// Holds reports whether o can have run inside of s, and been nearly all of it: a command in a script or a transaction.
// The server counts and logs both.
func (s Suspect) Holds(o Suspect) bool {
	return o.FromNs < s.ToNs && o.ToNs > s.FromNs && o.DurationNs <= s.DurationNs &&
		float64(o.DurationNs) >= degree.NearlyAll*float64(s.DurationNs) &&
		(s.Client == "" || o.Client == "" || s.Client == o.Client)
}
