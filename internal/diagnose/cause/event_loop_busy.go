package cause

import (
	"fmt"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
)

// eventLoopBusy: the main thread is on the CPU with work of its own, which no command asked for, and serves nobody.
var eventLoopBusy = Cause{
	ID:      "event-loop-busy",
	Class:   ServerStall,
	Changes: []string{"notify-keyspace-events", "tracking-*", "activerehashing"},
	After: []string{
		"short-lived-connections", "reconnect-herd", "aof-everysec-stall", "aof-fsync-always", "fork-latency",
		"introspection-load", "server-restarted", "replica-loading-or-readonly-routing",
	},
	Explain: explainLoopBusy,
}

// otherCausesLoop are meanings of functions that other causes explain.
var otherCausesLoop = facts.WordSet("defrag expire evict tls-handshake fork monitor")

func explainLoopBusy(n *facts.Node) *Finding {
	part, ok := ownWork(mainthread.LoopTimeOf(n))
	if !ok {
		return nil
	}
	cl := mainthread.ClaimOfLoop(n, func(p mainthread.LoopPart) bool { return p.ID == part.ID })
	if !cl.Matters() {
		return nil
	}
	f := finding(n, cl)
	f.Title = "The event loop was busy in " + format.Name(part.Function)
	if part.What != "" {
		f.Title += ": " + part.What
	}
	if part.ID != stacks.RDBLoad {
		f.IndependentOf = []string{"server-restarted", "replica-loading-or-readonly-routing"}
	}
	f.supportLoop(n, part)
	f.supportFanOut(n, part.ID)
	f.supportWaiting(n, cl)
	f.FixSteps = loopBusyFix(n, part.ID)
	return f
}

// supportFanOut says how many clients get the messages that the thread was at.
func (f *Finding) supportFanOut(n *facts.Node, id string) {
	out, receivers := mainthread.FanOutOf(n), 0
	what := "have subscriptions (CLIENT LIST)"
	switch id {
	case stacks.Tracking:
		receivers, what = out.Trackers, "track keys (tracking_clients)"
	case stacks.Published, stacks.KeyspaceEvents:
		receivers = out.Subscribers
	}
	if receivers > 0 {
		f.support(recording.SourceServer, float64(receivers), "clients", "up to %s %s; %s of the server's writes "+
			"answered no read (total_writes_processed, total_reads_processed)", counted(receivers, "client"), what,
			format.Percent(out.Share))
	}
}

// ownWork is what the thread did of its own, where that is the reason why it was busy.
func ownWork(t mainthread.LoopTime) (p mainthread.LoopPart, ok bool) {
	for _, p := range t.Parts {
		if (p.State == stacks.Loop && !otherCausesLoop[p.ID] || p.ID == "" && p.Function != "") &&
			t.Mostly(p.Samples) {
			return p, true
		}
	}
	return p, false
}

// loopBusyFix is what ends work of the event loop's own, by its meaning.
func loopBusyFix(n *facts.Node, id string) []remedy.Step {
	switch id {
	case stacks.KeyspaceEvents:
		return []remedy.Step{keyspaceEventsFix(n)}
	case "purge":
		if v, ok := n.Config("jemalloc-bg-thread"); ok && v == "no" {
			return []remedy.Step{remedy.ConfigSet(n, "purge-in-background", "jemalloc-bg-thread", "yes",
				"Let a thread of the allocator give freed memory back")}
		}
	case "rehash":
		if v, ok := n.Config("activerehashing"); ok && v == "yes" {
			return []remedy.Step{remedy.ConfigSet(n, "rehash-with-commands", "activerehashing", "no",
				"Let the table be moved by the commands that use it, a bucket at a time, and not in slices of 1 ms").
				Risking("a table that nobody uses stays in two copies")}
		}
	case "log":
		if v, ok := n.Config("loglevel"); ok && (v == "debug" || v == "verbose") {
			return []remedy.Step{remedy.ConfigSet(n, "log-less", "loglevel", "notice", "Log less")}
		}
	}
	if step, ok := loopBusyChanges[id]; ok {
		return []remedy.Step{step}
	}
	return []remedy.Step{findFunction(n)}
}

// loopBusyChanges are the fixes that are no setting of the server, by the meaning.
var loopBusyChanges = map[string]remedy.Step{
	stacks.Tracking: inApplication("fewer-told", "Have fewer clients be told of each key: the default mode of "+
		"CLIENT TRACKING, or OPTIN, in which only those that have read it are, instead of BCAST; with BCAST narrow "+
		"prefixes, and NOLOOP; one cache for each process, not for each connection. Let jobs write in batches of "+
		"some 100 keys, with pauses"),
	stacks.Published: inApplication("fewer-receivers", "Have fewer clients subscribe to the same channels, one for "+
		"each process, and publish less often or smaller messages: each is written to all of them at once. In a "+
		"cluster, SPUBLISH (7.0) reaches one shard"),
	"accept": inApplication("keep-connections", "Keep connections open and share them: each new one costs the "+
		"server as much as several calls"),
	"client-free": inApplication("keep-connections", "Keep connections open: the server frees each that is closed, "+
		"with all that it still holds for it"),
	"cluster": change("calmer-cluster", "Have fewer nodes in the cluster, or a larger cluster-node-timeout: each "+
		"node sends messages about all others to all others"),
	"replication": change("fewer-replicas", "Have fewer replicas at this server: let replicas follow another replica"),
	"unblock":     inApplication("fewer-waiters", "Have fewer clients wait for the same keys (BLPOP, XREAD BLOCK)"),
	"module": {
		ID: "less-in-module", Kind: remedy.Change, Restart: "the server",
		Text: "Find the module in MODULE LIST, update it, or give it less to do between commands",
	},
	"clients-cron": inApplication("fewer-connections", "Have fewer connections, and read replies sooner: the server "+
		"checks all of them and their buffers each second"),
	"resize": change("more-servers", "Spread the keys over more servers: a table of some hundred million keys is "+
		"allocated at once each time that their number doubles"),
}

func keyspaceEventsFix(n *facts.Node) remedy.Step {
	now, _ := n.Config("notify-keyspace-events")
	return remedy.Step{
		ID: "fewer-events", Kind: remedy.Setting, Library: "server", Option: "notify-keyspace-events", From: now,
		To: "<the classes that your subscribers use>", Where: "CONFIG SET at " + n.Address,
		Text: "Publish only what is used: K or E and not both, and the letters of the types and events; each event " +
			"is written to all subscribers whose pattern it matches",
		Asks: []string{"<the classes that your subscribers use>"},
	}
}

// findFunction: the stacks of all threads, with their callers.
func findFunction(n *facts.Node) remedy.Step {
	s := remedy.Step{
		ID: "find-the-function", Kind: remedy.Change, Where: "the server's host",
		Text: "Find what calls this function, and stop that: sample all of the server's stacks",
	}
	if pid := hosts.ServerPID(n); pid != 0 {
		s.Kind, s.Command = remedy.Command, fmt.Sprintf("perf record -g -p %d -- sleep 10 && perf report", pid)
	}
	return s
}
