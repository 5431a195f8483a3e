package cause

import (
	"sort"
	"strconv"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// introspectionLoad: monitoring itself loads the server: MONITOR, INFO and CLIENT LIST at a high rate, SLOWLOG GET of
// everything, MEMORY USAGE of big keys.
var introspectionLoad = Cause{
	ID:      "introspection-load",
	Class:   ServerStall,
	Changes: []string{"slowlog-*", "latency-*"},
	After:   []string{"cmdinfo-once-lock", "topology-refresh-storm"},
	Explain: explainIntrospection,
}

func explainIntrospection(n *facts.Node) *Finding {
	h := mainthread.ClaimOfKind(n, mainthread.KindIntrospection)
	monitors := caller.Monitors(n)
	share := monitorShare(n, len(monitors))
	if share >= degree.Part {
		h.Claim = add(h.Claim, monitored(n, share))
	}
	asked := introspectionShare(n)
	d, _ := mainthread.DemandOf(n)
	// Where the thread has no time left, calls queue for these commands, each too short to be seen.
	pattern := d.Total() >= facts.SaturatedDemand && max(asked, share) >= degree.Part
	if !h.Matters() && !pattern {
		return nil
	}
	f := finding(n, h.Claim)
	if pattern {
		f.loseOfCalls(n, max(asked/max(d.Run, asked), share), 0)
	}
	f.Title = "INFO, CLIENT LIST and similar commands load the server: they are sent too often, or ask for too much"
	if len(h.Suspects) > 0 {
		f.Title = h.Suspects[0].Command + " loads the server: it is sent too often, or asks for too much"
		f.supportCommands(n, h.Suspects)
		f.supportWaits(n, h, h.Suspects[0].Command)
		f.FixSteps = append(f.FixSteps, pollRarely(n, h.Suspects))
	}
	if share >= degree.Part {
		f.supportMonitors(n, monitors, share)
		if len(h.Suspects) == 0 {
			f.Title = "MONITOR repeats every command to its client, at the cost of all other clients"
		}
	}
	f.supportTimeOf(n)
	if v, ok := n.Config("slowlog-log-slower-than"); ok && v == "0" {
		f.support(recording.SourceServer, 0, "µs", "slowlog-log-slower-than is 0: every command is logged")
		f.FixSteps = append(f.FixSteps, remedy.ConfigSet(n, "log-slow-only", "slowlog-log-slower-than", "10000",
			"Log only commands of more than 10 ms, the default"))
	}
	if len(f.FixSteps) == 0 {
		f.FixSteps = append(f.FixSteps, pollRarely(n, nil))
	}
	f.doubtStopped(n, h)
	f.doubtStalls(n, h)
	return f
}

func (f *Finding) supportMonitors(n *facts.Node, monitors []caller.Client, share float64) {
	c := monitors[0]
	f.support(recording.SourceServer, float64(len(monitors)), "clients", "CLIENT LIST: %s in MONITOR, one is %s%s for "+
		"%d s", counted(len(monitors), "client"), c.Addr, caller.LibraryText(c), c.Age)
	f.support(recording.SourceServer, share, "", "each of %.0f commands per second is formatted and sent to them: "+
		"about %.0f %% of the main thread's work", mainthread.CommandsPerSecond(n), share*100)
	f.FixSteps = append(f.FixSteps, endMonitors(n, monitors))
}

// endMonitors closes the connections of MONITOR clients.
func endMonitors(n *facts.Node, monitors []caller.Client) remedy.Step {
	var kill []string
	for _, c := range monitors {
		by := []string{"ADDR", c.Addr}
		if c.OverUnix() { // the server has the same address for all of them
			by = []string{"ID", strconv.FormatInt(c.ID, 10)}
		}
		kill = append(kill, remedy.CLI(n, append([]string{"CLIENT", "KILL"}, by...)...))
	}
	command := strings.Join(kill, " && ")
	if len(monitors) > degree.Listed {
		command = killAll(n)
	}
	return remedy.Step{
		ID: "end-monitor", Kind: remedy.Command, Command: command,
		Text: "Close the connections that run MONITOR; SLOWLOG, LATENCY or a packet capture tell as much",
		Risk: "whoever reads them gets an error, and may connect again",
	}
}

// killAll closes all connections that run MONITOR, however many there are.
func killAll(n *facts.Node) string {
	return remedy.CLI(n, "CLIENT", "LIST") + ` | sed -n 's/^id=\([0-9]*\) .* cmd=monitor .*/\1/p' | xargs -n 1 ` +
		remedy.CLI(n, "CLIENT", "KILL", "ID")
}

// monitorNs is what a command costs for MONITOR clients: to format its line, to queue it and to write it. Measured on
// 7.0.15: 1.0 µs of CPU time with a pipeline of 50, 2.7 µs without, and little more for four clients.
// Bound: noted, on 7.0.15, between the two.
const monitorNs = 1500

// monitorShare estimates the share of MONITOR clients in the main thread's work: what the lines of commands cost, and
// their part of the writes that answer no read, whose work is the kernel's.
func monitorShare(n *facts.Node, monitors int) float64 {
	if monitors == 0 {
		return 0
	}
	out := mainthread.FanOutOf(n)
	replicas, _ := n.Series(series.ConnectedSlaves).Max()
	sys, user := n.Growth(series.UsedCPUSys), n.Growth(series.UsedCPUUser)
	written := out.Share * sys / max(sys+user, 1e-9) *
		float64(monitors) / (float64(monitors+out.Subscribers+out.Trackers) + replicas)
	cores, _, ok := mainthread.MainCores(n)
	if !ok || cores <= 0 {
		cores = 1
	}
	return min(1, max(written, mainthread.CommandsPerSecond(n)*monitorNs/1e9/cores))
}

// introspectionShare is the share of the time that went to monitoring commands, without those of the watch.
func introspectionShare(n *facts.Node) float64 {
	usec := -n.Growth(series.OwnCommandsTime)
	for _, u := range introspection(n) {
		usec += u.Usec
	}
	return max(usec, 0) / 1e6 / n.Seconds()
}

// introspection is what each of these commands took, the most expensive first.
func introspection(n *facts.Node) []mainthread.CommandUse {
	var out []mainthread.CommandUse
	for _, stat := range n.CountedCommands() {
		command, usec := strings.ToUpper(strings.ReplaceAll(stat, "|", " ")), n.Growth(series.CommandUsec(stat))
		if usec > 0 && account.Introspection(command) && !mainthread.GrowsWithClients(n, command) {
			calls := n.Growth(series.CommandCalls(stat))
			out = append(out, mainthread.CommandUse{Name: command, Calls: calls, Usec: usec})
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Usec > out[j].Usec })
	return out
}

// monitored claims MONITOR's part of the time that calls waited for a loop without another known reason to be busy. Its
// own output, and that of clients that do not read it fast enough, is among the bytes that were written.
func monitored(n *facts.Node, share float64) facts.Claim {
	cl := n.Claim(func(_ account.Account, s account.Segment) bool {
		if s.Suspect >= 0 {
			return n.Ledger.Suspects[s.Suspect].Kind == account.KindBulk
		}
		return facts.IsUnexplainedWait(s) && (!mainthread.HostWatched(n) || s.State == account.Busy ||
			s.State == account.Unexplained)
	})
	cl.Ns = int64(float64(cl.Ns) * share)
	return cl
}

// supportTimeOf says how much of the server's time the commands took during the watch.
func (f *Finding) supportTimeOf(n *facts.Node) {
	used := introspection(n)
	for _, u := range used[:min(len(used), degree.Listed)] {
		share := u.Usec / 1e6 / n.Seconds()
		f.support(recording.SourceServer, share, "", "%s took %.1f %% of the server's time: %.0f calls of %s ms",
			u.Name, share*100, u.Calls, format.Rounded(u.Usec/u.Calls/1e3))
	}
}

// cheaper is what to send instead of a monitoring command, or how often.
var cheaper = map[string]string{
	"INFO":   "INFO of the sections in use, not INFO all",
	"CLIENT": "INFO clients instead of CLIENT LIST, which walks all clients",
	"MEMORY": "MEMORY USAGE with SAMPLES 5, the default, and not 0, which walks the whole value",
}

// pollSeconds is how often to ask.
const pollSeconds = "15"

// pollRarely says of each monitoring command what to send instead, and how often.
func pollRarely(n *facts.Node, ss []account.Suspect) remedy.Step {
	var parts []string
	seen := map[string]bool{}
	for _, s := range ss {
		name, _, _ := strings.Cut(s.Command, " ")
		if seen[name] {
			continue
		}
		seen[name] = true
		part, ok := cheaper[name]
		switch {
		case name == "SLOWLOG" || name == "COMMANDLOG":
			part = name + " GET of at most 100 entries"
		case !ok:
			part = format.Name(s.Command)
		}
		parts = append(parts, part+caller.FromText(n, []account.Suspect{s}))
	}
	text := "Let one exporter ask every " + pollSeconds + " s, and only for what is used"
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, "; ")
	}
	return remedy.Step{ID: "poll-rarely", Kind: remedy.Change, To: pollSeconds, Text: text}
}
