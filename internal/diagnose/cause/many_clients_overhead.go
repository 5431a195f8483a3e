package cause

import (
	"fmt"

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

// manyClientsOverhead: work that grows with the number of connections, whatever they ask: CLIENT LIST, INFO of old
// versions, the periodic check of every client, and event-loop iterations that serve thousands at a time.
var manyClientsOverhead = Cause{
	ID:      "many-clients-overhead",
	Class:   ServerStall,
	Explain: explainManyClients,
}

func explainManyClients(n *facts.Node) *Finding {
	clients, _ := n.Series(series.ConnectedClients).Max()
	if clients < mainthread.ManyClients {
		return nil
	}
	h := mainthread.ClaimOfSuspects(n, func(s account.Suspect) bool {
		return s.Kind == account.KindCommand && mainthread.GrowsWithClients(n, s.Command)
	})
	q, _ := n.Queue() // the probe's calls wait in the same queue: by Little's law, so many wait or are served at a time
	queued := mainthread.CommandsPerSecond(n) * float64(q.MedianNs) / 1e9
	crowded := queued >= max(mainthread.ManyClients, degree.Most*clients)
	if !h.Matters() && !crowded {
		return nil
	}
	cl := h.Claim
	if crowded {
		cl = add(cl, n.UnexplainedWaits())
	}
	f := finding(n, cl)
	f.support(recording.SourceServer, clients, "clients", "%s connected", counted(clients, "client"))
	if h.Matters() {
		f.Title = fmt.Sprintf("%s walks %.0f connections: their number alone costs the server time",
			h.Suspects[0].Command, clients)
		f.supportCommands(n, h.Suspects)
		f.supportWaits(n, h, h.Suspects[0].Command)
		f.doubtStopped(n, h)
	}
	if crowded {
		f.loseOfCalls(n, q.Share(), q.WaitNs)
		f.support(recording.SourceProbe, queued, "calls", "about %.0f calls are queued at a time (%.0f commands per "+
			"second, %s each)", queued, mainthread.CommandsPerSecond(n), format.Brief(q.MedianNs))
	}
	f.FixSteps = manyClientsFix(n, h)
	return f
}

func manyClientsFix(n *facts.Node, h mainthread.SuspectClaim) (fix []remedy.Step) {
	if h.Matters() {
		text := "Ask for INFO clients instead of CLIENT LIST" + caller.FromText(n, h.Suspects) +
			", which walks all connections"
		if facts.ServerAtLeast(n, 6, 2) {
			text += "; for single ones there is CLIENT LIST ID"
		}
		fix = append(fix, change("info-clients", "%s", text))
	}
	fix = append(fix, inApplication("share-connections", "Share connections: a pool of 10-50 per process, or a "+
		"library that multiplexes (Lettuce, rueidis, StackExchange.Redis, valkey-glide); with many processes a proxy "+
		"(Envoy, twemproxy)"))
	return append(fix, closeIdle(n)...)
}
