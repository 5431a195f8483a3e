package cause

import (
	"slices"
	"strings"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
	"slowpath/internal/source/profile/stacks"
)

// cmdinfoOnceLock: go-redis learns from COMMAND where a command has its keys. Where it cannot parse the server's reply,
// it asks again with every call, under one lock, and closes the connection with the rest of the reply unread.
var cmdinfoOnceLock = Cause{
	ID:      "cmdinfo-once-lock",
	Explain: explainCommandLoop,
	Whole:   commandLock,
}

// commandLoop compares COMMAND with the other commands of all nodes: a replica may be asked for COMMAND alone.
type commandLoop struct {
	asked, usec   float64 // COMMAND
	data, dataUs  float64 // what applications ask for
	maps, redials float64
}

// count adds a node's commands: by INFO commandstats, or else by what the tap saw at the server.
func (l *commandLoop) count(n *facts.Node) (source string) {
	commands := n.CountedCommands()
	if len(commands) == 0 {
		l.countSeen(n)
		return recording.SourceTap
	}
	own := n.Growth(series.OwnPolls) + 1 // slowpath's own CLUSTER INFO
	l.asked += n.Growth(series.CommandCalls("command"))
	l.usec += n.Growth(series.CommandUsec("command"))
	l.redials += connection.ChurnOf(n).PerSecond * n.Seconds()
	for _, command := range commands {
		calls := n.Growth(series.CommandCalls(command))
		switch {
		case facts.IsDataCommand(command):
			l.data += calls
			l.dataUs += n.Growth(series.CommandUsec(command))
		case strings.HasPrefix(command, "cluster") && !strings.HasSuffix(command, "|info"):
			l.maps += max(calls-own, 0)
		}
	}
	return recording.SourceServer
}

func (l *commandLoop) countSeen(n *facts.Node) {
	for _, h := range n.Rec.HistogramSums(recording.SourceTap) {
		op, ok := strings.CutPrefix(h.Op, recording.Server+" ")
		if h.Node != n.Address || !ok {
			continue
		}
		count, ns := connection.TotalOf(h.Sum)
		switch command := strings.ToLower(op); {
		case command == "command":
			l.asked, l.usec = l.asked+count, l.usec+float64(ns)/1e3
		case facts.IsDataCommand(command):
			l.data, l.dataUs = l.data+count, l.dataUs+float64(ns)/1e3
		case strings.HasPrefix(command, "cluster") && command != "cluster info":
			l.maps += count
		}
	}
	l.redials += float64(brokenOff(n))
}

func explainCommandLoop(n *facts.Node) *Finding {
	var here, l commandLoop
	source := here.count(n)
	for _, o := range n.Nodes {
		l.count(o)
	}
	asked, broken := here.asked, brokenOff(n)
	// However rarely an application calls: no other client resets a connection with a reply that it asked for itself.
	brokenForMost := float64(broken) >= degree.Most*asked
	often := asked >= degree.Several*n.Seconds() || asked >= connection.MinRedials && brokenForMost
	// It asks once or twice for each call. A client object made for each job asks for the cluster map as often.
	if !often || l.data == 0 || l.asked < degree.Most*l.data || l.maps > degree.Most*l.asked ||
		l.redials < degree.Most*l.asked {
		return nil
	}
	f := &Finding{Of: n.Ledger.Calls()}
	f.loseOfCalls(n, l.usec/max(l.usec+l.dataUs, 1)/float64(len(n.Case.Nodes)), int64(l.usec*1e3/l.asked))
	f.ofCalls(n, l.asked/(l.asked+l.data))
	f.support(source, asked, "calls",
		"%.0f COMMANDs (%s per second); on all nodes together %.0f for %.0f calls of the application: %s for each",
		asked, format.Rounded(asked/n.Seconds()), l.asked, l.data, format.Rounded(l.asked/l.data))
	f.support(source, l.usec*1e3/l.asked, "ns",
		"COMMAND takes %s of the server's time, a call of the application %s", format.Brief(int64(l.usec*1e3/l.asked)),
		format.Brief(int64(l.dataUs*1e3/l.data)))
	if c := connection.ChurnOf(n); c.PerSecond > 0 {
		f.support(recording.SourceServer, c.PerSecond, "connections per second",
			"%s new connections per second: one for each COMMAND", format.Rounded(c.PerSecond))
	}
	if brokenForMost {
		f.support(recording.SourceTap, float64(broken), "connections",
			"the client reset %s (RST) with the rest of a reply unread", counted(broken, "connection"))
	} else {
		f.doubt(recording.SourceServer, 0, "",
			"a client object made for each job asks COMMAND as often; the application's "+
				"goroutines would show the difference: --pprof ADDRESS")
	}
	if version, ok := caller.UsesVersionBelow(n, "go-redis", 9); ok {
		f.support(recording.SourceHost, 0, "",
			"a client's process is built with go-redis %s, which asks for COMMAND and "+
				"cannot parse its newer replies (v9 does not ask)", version)
	}
	f.FixSteps = commandFix(n.Case, "")
	return f
}

// brokenOff counts the connections that their client reset, as seen at the server.
func brokenOff(n *facts.Node) (count int) {
	for e := range n.Rec.Conns(n.Address, recording.KindClose) {
		if e.Side == recording.Server && e.By == recording.Client && e.Reason == recording.CloseReset {
			count++
		}
	}
	return count
}

func inCommandLock(m stacks.Meaning) bool { return m.ID == "cmdinfo-once" || m.ID == "cmdinfo-load" }

// commandLock adds what the application's goroutines show, which is enough where the server hides its commands.
func commandLock(c *facts.Case, f *Finding) *Finding {
	w, ok := hosts.WorstWait(c, inCommandLock)
	if !ok {
		return f
	}
	if f == nil {
		f = &Finding{Of: c.Ledger.Calls()}
	}
	rest := f.Evidence
	f.Evidence, f.Against, f.Claims = nil, nil, nil
	f.lose(c.Nodes[0], facts.LostWaiting, w.Mean*c.Seconds()*1e9, 0) // with the time of COMMAND in it
	if waiting, ok := w.App.Waits(func(m stacks.Meaning) bool { return m.ID == "cmdinfo-once" }); ok {
		f.supportWait(waiting)
	}
	var ns, all int64 // of its locks, where the program counts it
	for _, d := range w.App.Delays[recording.ProfileMutex] {
		all += d.Ns
		if inCommandLock(d.Meaning) {
			ns += d.Ns
		}
	}
	if ns > 0 {
		f.support(recording.SourceProfile, float64(ns), "ns", "%s: %s of its mutex delay during the watch was at the "+
			"lock of (*cmdsInfoCache).Get (%.1f %%; sums over all goroutines)", w.App.DisplayName(), format.Brief(ns),
			100*float64(ns)/float64(all))
	}
	f.Evidence = append(f.Evidence, rest...)
	f.FixSteps = commandFix(c, w.LibraryFrame)
	return f
}

// commandFix names the version to upgrade to; the version in use is in the path of its package.
func commandFix(c *facts.Case, frame string) []remedy.Step {
	from := "go-redis"
	switch {
	case strings.Contains(frame, "go-redis/redis/v8."):
		from = "go-redis v8 (github.com/go-redis/redis/v8)"
	case strings.Contains(frame, "go-redis/redis/v7."):
		from = "go-redis v7 (github.com/go-redis/redis/v7)"
	case strings.Contains(frame, "go-redis/redis."):
		from = "go-redis v6 (github.com/go-redis/redis)"
	}
	for _, n := range c.Nodes {
		if version, ok := caller.UsesVersionBelow(n, "go-redis", 9); ok && !strings.Contains(from, " ") {
			from += " " + version
		}
	}
	to := "to v9 (github.com/redis/go-redis/v9), which can parse the reply of every server"
	recent := slices.ContainsFunc([]string{" v7", " v8", " 7.", " 8."}, func(v string) bool {
		return strings.Contains(from, v)
	})
	if !recent && !facts.ServerAtLeast(c.Nodes[0], 7, 0) {
		to = "to v9 (github.com/redis/go-redis/v9); v7.4.0 and v8 can parse the reply " +
			"of Redis 6, but not that of Redis 7 and Valkey"
	}
	return []remedy.Step{{
		ID: "upgrade-library", Kind: remedy.Change, Library: "go-redis", Restart: "the application",
		Text: "Upgrade " + from + " " + to + ". No option of the server or of the library turns it off",
		Risk: "its calls take a context, and its options have other names",
	}}
}
