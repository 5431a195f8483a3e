package cause

import (
	"fmt"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// manyClientsOverhead: work that grows with the number of connections, whatever they ask: CLIENT LIST, INFO of old
// versions, the periodic look at every client, and the turn of an event loop that serves thousands at a time. Catalogue
// I10.
var manyClientsOverhead = Cause{
	ID:    "many-clients-overhead",
	Title: "The server has so many connections that their number itself takes its time",
	Layer: "client",
	Class: ServerStall,
	Needs: Needs{
		T0: "thousands of connected_clients, and CLIENT LIST or INFO taking milliseconds, or thousands of calls in " +
			"line",
		T1: "the main thread on the CPU meanwhile",
		T2: "each CLIENT LIST or INFO that held the main thread, with its connection and process",
	},
	Explain: explainManyClients,
}

const (
	// crowd is how many calls are queued at a time for their number to be the problem.
	crowd = 2000
)

func explainManyClients(n *facts.Node) *Finding {
	clients, _ := n.Info("connected_clients").Max()
	if clients < facts.ManyClients {
		return nil
	}
	h := n.ClaimOfSuspects(func(s account.Suspect) bool {
		return s.Kind == account.KindCommand &&
			n.GrowsWithClients(s.Command)
	})
	line := inLine(n)
	crowded := line >= crowd && line >= clients/4
	if !h.Matters() && !crowded {
		return nil
	}
	f := finding(n, h.Claim, h.Confidence(n))
	f.support(recording.SourceServer, fmt.Sprintf("%.0f clients are connected", clients), clients, "clients")
	if h.Matters() {
		f.Title = fmt.Sprintf("%s walks %.0f connections: their number itself takes the server's time",
			h.Suspects[0].Command, clients)
		f.supportCommands(n, h.Suspects)
		f.supportWaits(n, h, h.Suspects[0].Command)
		f.doubtStopped(n, h)
		f.Confidence = min(f.Confidence+0.03, 0.97)
	}
	if crowded {
		q, _ := n.Queue()
		all := finding(n, n.UnexplainedWaits(), 0)
		f.ExcessShare, f.SlowCalls = max(f.ExcessShare, all.ExcessShare, q.Share()), max(f.SlowCalls, all.SlowCalls)
		f.Confidence = max(f.Confidence, 0.9)
		f.support(recording.SourceProbe, fmt.Sprintf("about %.0f calls are queued at a time (%.0f commands per "+
			"second, %s each)", line, n.CommandsPerSecond(), facts.Dur(q.MedianNs)), line, "calls")
	}
	f.Fix = []string{
		"Share connections: a pool of 10-50 per process, or a library that multiplexes (Lettuce, rueidis, " +
			"StackExchange.Redis, valkey-glide); a proxy (Envoy, twemproxy) where processes are many",
		"Close what is idle: CONFIG SET timeout 300 (with clients that reconnect), CLIENT LIST TYPE normal shows " +
			"idle= and addr=",
	}
	if h.Matters() {
		fix := "Ask for CLIENT LIST rarely" + n.FromText(h.Suspects) + ", or for less"
		if facts.ServerAtLeast(n, 6, 2) {
			fix = "CLIENT LIST ID id …, CLIENT INFO or INFO clients in place of CLIENT LIST" + n.FromText(h.Suspects)
		}
		f.Fix = append([]string{fix}, f.Fix...)
	}
	f.See = []string{
		"https://redis.io/docs/latest/develop/reference/clients/",
		"https://github.com/redis/redis/pull/4727",
	}
	return f
}

// inLine is how many calls wait or are served at a time, by Little's law: those per second times how long each takes.
// It holds for the probe's calls as they stand in the same line.
func inLine(n *facts.Node) float64 {
	q, ok := n.Queue()
	if !ok {
		return 0
	}
	return n.CommandsPerSecond() * float64(q.MedianNs) / 1e9
}
