package cause

import (
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/mainthread"
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
	f.support(n.CallSource(), float64(cl.Calls), "calls", "%s waited for it, up to %s", ofSlow(cl.Calls, n),
		format.Brief(cl.MaxNs))
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
