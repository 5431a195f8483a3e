package cause

import (
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

// luaOrMultiLong: a script or a transaction is atomic: no other client is served until all of it is done.
var luaOrMultiLong = Cause{
	ID:      "lua-or-multi-long",
	Class:   ServerStall,
	Explain: explainLuaOrMulti,
}

func explainLuaOrMulti(n *facts.Node) *Finding {
	h := mainthread.ClaimOfKind(n, mainthread.KindScriptOrMulti)
	busy := errors(n, "BUSY")
	if !h.Matters() && busy == 0 {
		return nil
	}
	if busy > 0 && h.Ns == 0 {
		h.Claim = n.UnexplainedWaits() // the script has not ended, so no log shows it yet
	}
	f := finding(n, h.Claim)
	if busy > 0 {
		f.Title = "A script runs so long that the server answers BUSY"
		f.support(recording.SourceServer, float64(busy), "errors", "%s got BUSY: a script has run for longer than "+
			"lua-time-limit (busy-reply-threshold), 5 s by default", counted(busy, "call"))
	}
	command := "a script"
	if len(h.Suspects) > 0 {
		command = h.Suspects[0].Command
		if busy == 0 {
			f.Title = command + " is atomic and long: it holds the event loop, and all other calls wait for it"
		}
		f.supportCommands(n, h.Suspects)
		f.supportWaits(n, h, command)
		f.supportInner(n, h.Suspects[0])
		f.doubtStopped(n, h)
		f.doubtStalls(n, h)
	}
	if busy > 0 {
		f.FixSteps = append(f.FixSteps, killScript(n, command))
	}
	f.FixSteps = append(f.FixSteps, scriptFix(command, caller.FromText(n, h.Suspects))...)
	return f
}

// supportInner says how many commands each script or transaction ran: the server counts them separately.
func (f *Finding) supportInner(n *facts.Node, s account.Suspect) {
	outer := series.InCommandstats(s.Command)
	runs := n.GrowthAround(series.CommandCalls(outer), s)
	if runs == 0 {
		return
	}
	name, most := "", 0.0
	for _, command := range n.CountedCommands() {
		if d := n.GrowthAround(series.CommandCalls(command), s); d > most && command != outer {
			name, most = command, d
		}
	}
	if per := most / runs; per >= degree.Many {
		f.support(recording.SourceServer, per, "calls",
			"commandstats: %.0f calls of %s for each %s", per, strings.ToUpper(name), s.Command)
	}
}

// killScript ends the script that runs now.
func killScript(n *facts.Node, command string) remedy.Step {
	what := "SCRIPT"
	if strings.HasPrefix(command, "FCALL") {
		what = "FUNCTION"
	}
	return remedy.Step{
		ID: "kill-script", Kind: remedy.Command, Command: remedy.CLI(n, what, "KILL"),
		Text: "End the script that runs now", Risk: "its caller gets an error; the server refuses it once the script " +
			"has written",
	}
}

func scriptFix(command, from string) []remedy.Step {
	if command == "EXEC" {
		return []remedy.Step{
			inApplication("smaller-batches", "Split the transaction%s: at most some 100 commands between MULTI and "+
				"EXEC, and plain pipelines of that many for what need not be atomic. A pipeline is a transaction by "+
				"default in redis-py (pipeline(transaction=False)); in go-redis TxPipelined is one, Pipelined is none",
				from),
		}
	}
	return []remedy.Step{
		inApplication("in-steps", "Limit the loops of the script that %s%s runs: a cursor and some 100 keys per call, "+
			"called again until it is done", format.Name(command), from),
		orElse(inApplication("compute-in-client", "Compute in the client, and keep only what must be atomic in the "+
			"script")),
	}
}

// errors counts the error replies with a code that the watch received.
func errors(n *facts.Node, code string) int {
	count := 0
	for _, e := range n.Rec.Events {
		if e.Kind == recording.KindError && e.Subject == n.Address &&
			recording.DetailOf[recording.ErrorDetail](e).Code == code {
			count++
		}
	}
	for _, c := range n.Rec.Calls {
		if c.Node == n.Address && c.Error == code {
			count++
		}
	}
	return count
}
