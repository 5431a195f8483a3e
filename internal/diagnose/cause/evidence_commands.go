package cause

import (
	"fmt"
	"slices"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// doubtStalls checks, where nobody watched the host, whether these commands were long by their own work. A thread that
// is kept from running makes every command long, even those of constant time, and uses less CPU time than they last.
func (f *Finding) doubtStalls(n *facts.Node, h mainthread.SuspectClaim) {
	if mainthread.HostWatched(n) {
		return
	}
	var own, cheap, longest int64
	for _, s := range n.Ledger.Suspects {
		if s.Node != n.Address || s.Kind != account.KindCommand || s.Source != "slowlog" {
			continue
		}
		own += s.DurationNs
		if account.ConstantTime(s.Command) && mainthread.KindOf(n, s) == mainthread.KindOther {
			cheap++
			longest = max(longest, s.DurationNs)
		}
	}
	if cheap > 1 && len(h.Suspects) > 0 && longest*2 >= h.Suspects[0].DurationNs {
		f.doubt(recording.SourceServer, float64(cheap), "commands",
			"SLOWLOG also shows %s of little work, up to %s: something keeps the server from running",
			counted(cheap, "command"), format.Brief(longest))
		f.weaken(2)
	}
	// CPU time is known to some milliseconds, and what the thread does between commands only adds to it.
	cores, source, ok := mainthread.MainCores(n)
	all, used := max(mainthread.CommandsNs(n), own), mainthread.PolledCPUNs(n, cores)
	if ok && 2*used < all && all-used > max(own/2, facts.HealthyMaxNs) { // most of their time may be of that
		f.doubt(source, float64(used), "ns",
			"all commands together lasted %s by the clock (commandstats, SLOWLOG), but the server used only %s of CPU "+
				"time: something keeps it from running", format.Brief(all), format.Brief(used))
		f.weaken(2)
	}
}

// supportWaits says how many slow calls waited, and how many did that work themselves: a command does not wait for
// itself.
func (f *Finding) supportWaits(n *facts.Node, h mainthread.SuspectClaim, what string) {
	source := mainthread.StateSource(n)
	seen := slices.ContainsFunc(h.Suspects, func(s account.Suspect) bool { return s.Source == recording.SourceTap })
	if source == recording.SourceTap && len(h.Suspects) > 0 && !seen { // the waits were seen, but not what for
		source, f.Grade = recording.SourceServer, Counted
	}
	waited := h.Calls - h.Own
	if waited <= 0 && h.Own > 0 {
		f.support(source, float64(h.Own), "calls",
			"%s did that work themselves (%s), up to %s in one call", ofSlow(h.Own, n), what, format.Brief(h.MaxNs))
	}
	if waited <= 0 {
		return
	}
	more := ""
	if h.Own > 0 {
		more = fmt.Sprintf("; %s more did that work themselves", format.Thousands(h.Own))
	}
	f.support(source, float64(waited), "calls",
		"%s waited for %s, up to %s in one call%s", ofSlow(waited, n), what, format.Brief(h.MaxWaitNs), more)
}

// supportMovedKeys says by how much memory fell when keys moved away, and what the server counted of commands that move
// keys.
func (f *Finding) supportMovedKeys(n *facts.Node, h mainthread.SuspectClaim, commands ...string) {
	moved := 0.0
	for _, s := range h.Suspects {
		moved = max(moved, n.MemoryFall(s))
	}
	if moved >= mainthread.MinFreeBytes {
		f.support(recording.SourceServer, moved, "bytes",
			"used_memory fell by up to %.1f MB at about that time: a value that moved away", moved/1e6)
	}
	for _, c := range commands {
		stat := series.InCommandstats(c)
		if calls := n.Growth(series.CommandCalls(stat)); calls > 0 {
			f.support(recording.SourceServer, calls, "calls",
				"%.0f %s during the watch, %s each on average (commandstats)", calls, c,
				format.Brief(int64(n.GrowthNs(series.CommandUsec(stat))/calls)))
		}
	}
}

// supportCommands adds what the server reports of each command, for the worst three, and who sent them.
func (f *Finding) supportCommands(n *facts.Node, ss []account.Suspect) {
	f.blameCommands(n, ss)
	type sum struct {
		account.Suspect
		count    int
		totalNs  float64
		clients  map[string]bool
		reported map[string]bool
		onCPUNs  int64
	}
	by := map[string]*sum{}
	var order []string
	for _, s := range ss {
		key := s.Source + " " + s.Command
		t := by[key]
		if t == nil {
			t = &sum{Suspect: s, clients: map[string]bool{}, reported: map[string]bool{}}
			by[key], order = t, append(order, key)
		}
		t.count += max(s.Count, 1)
		t.totalNs += float64(s.DurationNs) * float64(max(s.Count, 1))
		t.DurationNs = max(t.DurationNs, s.DurationNs)
		t.onCPUNs = max(t.onCPUNs, s.OnCPUNs)
		t.reported[s.Record] = true
		if who := caller.WhoSent(n, s); who.Known() {
			t.clients[who.Key()] = true
		}
	}
	for _, key := range order[:min(len(order), degree.Listed)] {
		t, from := by[key], ""
		if who := caller.ClientText(n, t.Suspect); who != "" {
			from = ", from " + who
		}
		if t.Source == recording.SourceTap {
			text := fmt.Sprintf("%s held the main thread %s, up to %s (%s of it on the CPU)%s", t.Command,
				facts.TimesText(t.count), format.Brief(t.DurationNs), format.Brief(t.onCPUNs), from)
			if more := len(t.clients) - 1; more > 0 {
				text += fmt.Sprintf(" and %s", counted(more, "other caller"))
			}
			f.support(recording.SourceTap, float64(t.DurationNs), "ns", "%s", text)
			if t.reported["slowlog"] {
				f.support(recording.SourceServer, 0, "", "SLOWLOG shows %s too", t.Command)
			} else if t.reported["commandstats"] {
				f.support(recording.SourceServer, 0, "", "commandstats counts the time of %s too", t.Command)
			}
			continue
		}
		if t.Source == "slowlog" {
			f.support(recording.SourceServer, float64(t.DurationNs), "ns",
				"SLOWLOG: %s took up to %s, %s during the watch%s", t.Command, format.Brief(t.DurationNs),
				facts.TimesText(slowlogEntries(n, t.Command)), from)
			continue
		}
		mean := int64(t.totalNs / float64(t.count))
		f.support(recording.SourceServer, float64(mean), "ns",
			"commandstats: %s took %s on average, %s while calls waited", t.Command, format.Brief(mean),
			facts.TimesText(t.count))
	}
}

// slowlogEntries are those of a command: also such for which no slow call waited, or which another one stands for.
func slowlogEntries(n *facts.Node, command string) (count int) {
	for _, s := range n.Ledger.Suspects {
		if s.Node == n.Address && s.Source == "slowlog" && s.Command == command {
			count++
		}
	}
	return count
}

// doubtStopped says where the thread was also kept from running: then the command took longer than its work.
func (f *Finding) doubtStopped(n *facts.Node, h mainthread.SuspectClaim) {
	stopped := 0
	for _, s := range h.Suspects {
		if s.Stopped {
			stopped++
		}
	}
	if stopped > 0 && mainthread.StateSource(n) != recording.SourceServer {
		f.doubt(mainthread.StateSource(n), float64(stopped), "commands",
			"the main thread was also kept from running near %d of these: not all of their time was work", stopped)
	}
}
