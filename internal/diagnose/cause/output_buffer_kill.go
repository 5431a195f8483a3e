package cause

import (
	"fmt"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// outputBufferKill: the server closes a client that takes its replies or messages more slowly than they come, at
// client-output-buffer-limit (networking.c, closeClientOnOutputBufferLimitReached).
var outputBufferKill = Cause{
	ID:      "output-buffer-kill",
	Changes: []string{"client-output-buffer-limit"},
	Explain: explainOutputKill,
}

func explainOutputKill(n *facts.Node) *Finding {
	k, ok := outputKills(n)
	if !ok {
		return nil
	}
	clients, _ := n.Series(series.ConnectedClients).Max()
	f := &Finding{Of: n.Ledger.Calls(), Samples: int(k.Count), Grade: Counted}
	f.loseBeside(n, facts.LostSilent, k.Count/(k.Count+clients), facts.HealthyMaxNs)
	if k.Counted {
		f.support(recording.SourceServer, k.Count, "clients", "the server closed %s at client-output-buffer-limit "+
			"(client_output_buffer_limit_disconnections)", counted(k.Count, "client"))
	} else {
		f.Grade = Inferred
		f.doubt(recording.SourceServer, 0, "",
			"before 7.4 the server does not count why it closes clients; its log says it")
	}
	f.Title = map[string]string{
		pubSubClients: "The server closes subscribers whose output buffer is full: they read messages more " +
			"slowly than they come",
		replicaClients: "The server closes replicas whose output buffer is full: each has to synchronise again",
	}[k.Limit.Class]
	if len(k.Callers) > 0 {
		what := "without a call, as subscribers have"
		if k.Limit.Class == normalClients {
			what = "with a call that had no reply yet"
		}
		f.support(recording.SourceTap, k.Count, "connections", "it closed connections %s: those of %s", what,
			k.Callers.List(3))
	}
	f.supportOutputLimit(n, k)
	f.FixSteps = outputFix(n, k.Limit)
	return f
}

func (f *Finding) supportOutputLimit(n *facts.Node, k OutputKills) {
	if l := k.Limit; l.Class != "" {
		f.support(recording.SourceServer, float64(l.Hard), "bytes", "client-output-buffer-limit %s: at %s, or %s for "+
			"%d s", l.Class, format.Bytes(l.Hard), format.Bytes(l.Soft), l.SoftSeconds)
	}
	if c := k.Largest; c.OMem > 0 {
		f.support(recording.SourceServer, float64(c.OMem), "bytes",
			"CLIENT LIST: %s (%s) had %s in its output buffer, last command %s", caller.ClientLabel(c.Addr, ""),
			outputClass(c), format.Bytes(c.OMem), format.Name(c.Cmd))
	}
	if k.MostBytes > 0 {
		f.support(recording.SourceServer, k.MostBytes, "bytes", "the largest output buffer of a client had %s "+
			"(client_recent_max_output_buffer)", format.Bytes(int64(k.MostBytes)))
	}
	if syncs := n.Growth(series.SyncFull); syncs > 0 {
		f.support(recording.SourceServer, syncs, "", "meanwhile replicas synchronised from the start %s (sync_full)",
			facts.TimesText(int(syncs)))
	}
}

func outputFix(n *facts.Node, l OutputLimit) []remedy.Step {
	raise := remedy.ConfigSet(n, "raise-output-limit", "client-output-buffer-limit",
		fmt.Sprintf("%s %d %d %d", l.Class, 2*l.Hard, 2*l.Soft, l.SoftSeconds), "Give them twice the room").
		Risking("each client that does not read may take so much memory")
	switch l.Class {
	case pubSubClients:
		return []remedy.Step{
			inApplication("read-at-once", "Have the subscriber's connection read by a thread that does nothing else, "+
				"and handle messages elsewhere, with a bounded queue; or use streams (XREADGROUP), where a slow "+
				"reader loses nothing"),
			raise,
		}
	case replicaClients:
		return []remedy.Step{
			raise,
			change("faster-replica", "Look at why the replica is slow to take what the master writes (disk while it "+
				"loads, bandwidth), and raise repl-backlog-size, so that it need not synchronise from the start"),
		}
	}
	return []remedy.Step{
		inApplication("smaller-replies", "Read less at once: SCAN, HSCAN, pages of LRANGE and ZRANGE, shorter "+
			"pipelines; subscribers: handle messages on another thread than the one that reads"),
	}
}
