package cause

import (
	"fmt"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// bigKeyIO: the main thread copies values of megabytes into replies and writes them to sockets. The time in SLOWLOG
// ends before the write.
var bigKeyIO = Cause{
	ID:      "big-key-io",
	Class:   ServerStall,
	Changes: []string{"request size", "reply size"},
	Explain: explainBigKeyIO,
}

func explainBigKeyIO(n *facts.Node) *Finding {
	monitored := len(caller.Monitors(n)) > 0
	h := mainthread.ClaimOfSuspects(n, func(s account.Suspect) bool {
		return s.Kind == account.KindBulk && !monitored || mainthread.KindOf(n, s) == mainthread.KindBulkTransfer
	})
	if !h.Matters() {
		return nil
	}
	f := finding(n, h.Claim)
	var commands []account.Suspect
	for _, s := range h.Suspects {
		if s.Kind == account.KindCommand {
			commands = append(commands, s)
		}
	}
	f.supportCommands(n, commands)
	f.supportWaits(n, h, "big values")
	for _, d := range []struct {
		of   series.Name
		text string
	}{
		{series.TotalNetOutputBytes, "sent"},
		{series.TotalNetInputBytes, "received"},
	} {
		bytes := n.Growth(d.of)
		each := bytes / max(1, n.Growth(series.TotalCommandsProcessed))
		if bytes/n.Seconds() >= mainthread.MinBulkBytes {
			f.support(recording.SourceServer, bytes/n.Seconds(), "bytes/s",
				"the server %s %.0f MB per second, %.0f kB per command", d.text, bytes/n.Seconds()/1e6, each/1e3)
		}
	}
	f.supportBuffers(n)
	log, logged := f.supportLarge(n)
	if len(logged) > 0 { // the server's own record of each
		f.blameCommands(n, logged)
	}
	f.doubtStopped(n, h)
	f.doubtStalls(n, h)
	if len(commands) == 0 {
		commands = logged
	}
	f.FixSteps = bigKeyFix(n, commands, log)
	return f
}

// supportBuffers shows the clients with the largest buffers.
func (f *Finding) supportBuffers(n *facts.Node) {
	for _, b := range []struct {
		of   series.Name
		what string
	}{
		{series.ClientRecentMaxOutputBuffer, "reply"},
		{series.ClientRecentMaxInputBuffer, "argument"},
	} {
		if v, ok := n.Series(b.of).Max(); ok && v >= mainthread.MinBulkBytes {
			f.support(recording.SourceServer, v, "bytes",
				"the largest %s buffer of a client was %.1f MB (%s)", b.what, v/1e6, b.of.Name)
		}
	}
	var worst caller.Client
	for _, c := range caller.Clients(n) {
		if c.OMem+c.Qbuf > worst.OMem+worst.Qbuf {
			worst = c
		}
	}
	if worst.OMem+worst.Qbuf >= mainthread.MinBulkBytes {
		f.support(recording.SourceServer, float64(worst.OMem+worst.Qbuf), "bytes",
			"CLIENT LIST: %s%s had %.1f MB of replies and %.1f MB of requests in its buffers, last command %s",
			worst.Addr, caller.LibraryText(worst), float64(worst.OMem)/1e6, float64(worst.Qbuf)/1e6, worst.Cmd)
	}
}

// partOf is the command that reads a part of what another reads.
var partOf = map[string]string{
	"GET": "GETRANGE", "HGETALL": "HMGET of the fields", "HVALS": "HMGET of the fields",
	"LRANGE": "LRANGE over fewer elements", "ZRANGE": "ZRANGE over fewer members", "SMEMBERS": "SSCAN in steps",
}

func bigKeyFix(n *facts.Node, commands []account.Suspect, log string) (fix []remedy.Step) {
	what, part := "the big values", "HMGET, GETRANGE, or LRANGE over fewer elements"
	if len(commands) > 0 {
		what = "what " + format.Name(commands[0].Command) + caller.FromText(n, commands) + " moves"
		if known, ok := partOf[commands[0].Command]; ok {
			part = known
		}
	}
	find := "redis-cli --memkeys on a replica finds the keys"
	if log != "" {
		find = remedy.CLI(n, "COMMANDLOG", "GET", "10", log) + " shows the keys"
	}
	reads := n.Growth(series.TotalNetOutputBytes) >= n.Growth(series.TotalNetInputBytes)
	if reads {
		fix = append(fix, inApplication("read-a-part",
			"Read only the part that is needed of %s, by %s", what, part))
	}
	return append(fix, remedy.Step{
		ID: "smaller-values", Kind: remedy.Change, Or: reads, Restart: "the application",
		Text: fmt.Sprintf("Split %s into keys below 100 kB of which each call needs one, or compress it; %s",
			what, find),
	}, orElse(inApplication("own-server", "Keep big values in an object store, or in a server of their own, so "+
		"that small calls do not wait for them")))
}
