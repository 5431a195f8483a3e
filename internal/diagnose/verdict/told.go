package verdict

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// number is a field of INFO that is told where it is not 0.
type number struct {
	of    series.Name
	text  string // what it says
	thing string // what it counts; empty: it says yes
	grows bool   // it is a sum since the server began
}

// numbers are told in this order.
var numbers = []number{
	{series.Loading, "it loads its data", "", false},
	{series.ConnectedClients, "connected", "client", false},
	{series.BlockedClients, "waiting in a blocking command", "client", false},
	{series.RejectedConnections, "refused at maxclients", "connection", true},
	{series.InstantaneousOps, "in the last second", "command", false},
	{series.UsedMemory, "memory of data and buffers", "", false},
	{series.UsedMemoryRSS, "resident memory", "", false},
	{series.MaxMemory, "memory from which on keys are evicted", "", false},
	{series.EvictedKeys, "evicted", "key", true},
	{series.ExpiredKeys, "expired", "key", true},
	{series.ExpiredSubkeys, "expired", "hash field", true},
	{series.ExpiredFields, "expired", "hash field", true},
	{series.ExpiredTimeCapReachedCount, "the expire cycle used up its time", "time", true},
	{series.LatestFork, "the last fork", "", false},
	{series.RDBBgsaveInProgress, "a BGSAVE is under way", "", false},
	{series.AOFRewriteInProgress, "an AOF rewrite is under way", "", false},
	{series.AOFDelayedFsync, "writes waited for an fsync", "time", true},
	{series.ActiveDefragRunning, "active defragmentation is under way", "", false},
	{series.ClientRecentMaxOutputBuffer, "largest output buffer of a client", "", false},
	{series.ClientsOverOutputLimit, "closed at client-output-buffer-limit", "client", true},
	{series.SyncFull, "full resyncs", "replica", true},
}

// told is what texts say of the servers, without a judgement; nil where the recording is not of texts.
func told(c *facts.Case) (out []cause.Evidence) {
	if !c.Rec.Used(recording.SourceText) {
		return nil
	}
	for _, n := range c.Nodes {
		say := func(value float64, unit, text string, a ...any) {
			text = fmt.Sprintf(text, a...)
			if len(c.Nodes) > 1 {
				text = n.Address + ": " + text
			}
			out = append(out, cause.Evidence{Source: recording.SourceServer, Text: text, Value: value, Unit: unit})
		}
		toldSlowlog(n, say)
		toldLatency(n, say)
		toldDoctor(n, say)
		toldNumbers(n, say)
		toldCommands(n, say)
		toldClients(n, say)
	}
	return out
}

// ofTexts is the verdict of texts, which never show that all is well: they have no calls.
func ofTexts(c *facts.Case, d Diagnosis) (said, summary string) {
	const noCalls = " The texts have no calls: what callers waited for is not in them."
	if len(d.Findings) > 0 {
		f := d.Findings[0]
		text := f.Title + whereOf(d, f) + "."
		if f.ClaimedShare > 0 {
			text += fmt.Sprintf(" It is %s of the time of %s in SLOWLOG.", format.Percent(f.ExcessShare),
				format.Count(slowCalls(c.Ledger), "command"))
		}
		return Findings, text + noCalls
	}
	return Inconclusive, "Inconclusive: these texts do not show why calls were slow." + noCalls
}

// say tells a fact.
type say func(value float64, unit, text string, a ...any)

func toldSlowlog(n *facts.Node, say say) {
	type command struct {
		name       string
		count      int
		ns, longNs int64
		lastNs     int64
	}
	by := map[string]*command{}
	events := n.Events(recording.SourceServer, recording.KindSlowlog)
	for _, e := range events {
		d := recording.DetailOf[recording.SlowlogDetail](e)
		k := by[d.Command]
		if k == nil {
			k = &command{name: d.Command}
			by[d.Command] = k
		}
		k.count, k.ns, k.longNs = k.count+1, k.ns+e.DurationNs, max(k.longNs, e.DurationNs)
		k.lastNs = max(k.lastNs, e.TimeNs)
	}
	all := make([]*command, 0, len(by))
	for _, k := range by {
		all = append(all, k)
	}
	slices.SortFunc(all, func(a, b *command) int {
		return cmp.Or(cmp.Compare(b.ns, a.ns), cmp.Compare(a.name, b.name))
	})
	for _, k := range all[:min(len(all), degree.Listed)] {
		say(float64(k.longNs), "ns", "SLOWLOG: %s %s, up to %s, %s together, the last at %s", k.name,
			facts.TimesText(k.count), format.Brief(k.longNs), format.Brief(k.ns), second(k.lastNs))
	}
	if more := len(all) - degree.Listed; more > 0 {
		say(float64(more), "commands", "SLOWLOG: %s", format.Count(more, "more command"))
	}
}

func second(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05 UTC") }

func toldLatency(n *facts.Node, say say) {
	type event struct {
		name          string
		count         int
		longNs, lastN int64
	}
	var all []event
	for _, e := range n.Events(recording.SourceServer, recording.KindLatency) {
		name := recording.DetailOf[recording.LatencyDetail](e).Event
		i := slices.IndexFunc(all, func(o event) bool { return o.name == name })
		if i < 0 {
			i, all = len(all), append(all, event{name: name})
		}
		all[i].count++
		all[i].longNs, all[i].lastN = max(all[i].longNs, e.DurationNs), max(all[i].lastN, e.TimeNs)
	}
	slices.SortStableFunc(all, func(a, b event) int { return cmp.Compare(b.longNs, a.longNs) })
	for _, e := range all[:min(len(all), degree.Listed)] {
		say(float64(e.longNs), "ns", "LATENCY: %s in %s, up to %s, the last at %s", e.name,
			format.Count(e.count, "second"), format.Brief(e.longNs), second(e.lastN))
	}
}

// toldDoctor tells what LATENCY DOCTOR said of events, which have no time there.
func toldDoctor(n *facts.Node, say say) {
	for _, s := range n.Rec.Snapshots {
		if s.Source != recording.SourceServer || s.Subject != n.Address || s.Name != recording.SnapshotLatencyDoctor {
			continue
		}
		for line := range strings.Lines(s.Body[:min(len(s.Body), maxDoctorBytes)]) {
			say(0, "", "LATENCY DOCTOR: %s", strings.TrimSpace(line))
		}
	}
}

// maxDoctorBytes of a report are told.
// Bound: arithmetic, the size of a list.
const maxDoctorBytes = 2 << 10

func toldNumbers(n *facts.Node, say say) {
	for _, f := range numbers {
		counts := n.Series(f.of)
		v, ok := counts.Last()
		if !ok || v <= 0 || v > maxTold {
			continue
		}
		text := f.text
		switch {
		case f.of.Unit == series.Bytes:
			text += ": " + format.Bytes(int64(v))
		case f.of.Unit == series.Microseconds:
			text += ": " + format.Brief(int64(f.of.Ns(v)))
		case f.thing != "":
			text += ": " + format.Count(int64(v), f.thing)
		}
		text += " (" + f.of.Name + ")"
		if f.grows {
			text += since(n, counts, v, f.thing)
		}
		say(v, string(f.of.Unit), "%s", text)
	}
}

const (
	// maxUptime is the longest uptime in seconds.
	// Bound: arithmetic, a guard of a conversion.
	maxUptime = 1e9
	// maxTold is the largest number that is told.
	// Bound: arithmetic, a guard of a conversion.
	maxTold = 1e15
)

// since says from when on a counter counts, and where there are several INFO, by how much it rose between them.
func since(n *facts.Node, s recording.Series, v float64, unit string) string {
	text := ""
	if up, ok := n.Series(series.UptimeInSeconds).Last(); ok && up > 0 {
		age := time.Duration(min(up, maxUptime)) * time.Second
		before := format.Interval(age)
		if days := age / (24 * time.Hour); days > 1 {
			before = format.Count(days, "day")
		}
		text = fmt.Sprintf(" since it began, %s before, or its counters were reset", before)
	}
	polls := n.Events(recording.SourceServer, recording.KindPoll)
	if len(polls) > 1 {
		text += fmt.Sprintf("; %s of these in the last %s", format.Count(int64(min(s.Growth(), v)), unit),
			format.Interval(time.Duration(polls[len(polls)-1].TimeNs-polls[0].TimeNs).Round(time.Second)))
	}
	return text
}

// toldCommands tells the commands that took most of the main thread's time.
func toldCommands(n *facts.Node, say say) {
	type command struct {
		name        string
		calls, usec float64
	}
	var all []command
	for _, name := range n.Rec.Names(recording.SourceServer, n.Address, series.CommandPrefix) {
		op, ok := strings.CutSuffix(strings.TrimPrefix(name, series.CommandPrefix), ".usec")
		if !ok {
			continue
		}
		usec, _ := n.Series(series.CommandUsec(op)).Last()
		calls, _ := n.Series(series.CommandCalls(op)).Last()
		if calls > 0 && usec > 0 && calls <= maxTold && usec <= maxTold {
			all = append(all, command{strings.ToUpper(op), calls, usec})
		}
	}
	slices.SortStableFunc(all, func(a, b command) int { return cmp.Compare(b.usec, a.usec) })
	for _, k := range all[:min(len(all), degree.Listed)] {
		say(k.usec*1000, "ns", "commandstats: %s took %s in %s, %s each",
			format.Name(strings.ReplaceAll(k.name, "|", " ")), format.Brief(int64(k.usec*1000)),
			format.Count(int64(k.calls), "call"), format.Brief(int64(k.usec*1000/k.calls)))
	}
}

// toldClients tells who the clients are, and which of them cost the server most.
func toldClients(n *facts.Node, say say) {
	hosts, monitors := facts.NameCounts{}, facts.NameCounts{}
	seen := map[int64]bool{} // CLIENT LIST may be there several times
	var largest caller.Client
	for _, c := range caller.AllClients(n) {
		if c.Self || seen[c.ID] {
			continue
		}
		seen[c.ID] = true
		host, _, _ := strings.Cut(c.Addr, ":")
		if a, err := netip.ParseAddrPort(c.Addr); err == nil {
			host = a.Addr().String()
		}
		hosts[host]++
		if strings.Contains(c.Flags, "O") {
			monitors[host]++
		}
		if c.OMem > largest.OMem {
			largest = c
		}
	}
	if len(seen) == 0 {
		return
	}
	say(float64(len(seen)), "clients", "CLIENT LIST: %s, from %s", format.Count(len(seen), "client"),
		hosts.List(degree.Listed))
	if len(monitors) > 0 {
		say(float64(len(monitors)), "hosts", "CLIENT LIST: MONITOR is under way, from %s", monitors.List(degree.Listed))
	}
	if largest.OMem > 0 {
		say(float64(largest.OMem), "bytes", "CLIENT LIST: the largest output buffer has %s, of %s (%s)",
			format.Bytes(largest.OMem), largest.Addr, strings.ToUpper(largest.Cmd))
	}
}
