package cause

import (
	"fmt"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// unreachableAddress: callers first dial an address that does not answer, and then one that does.
var unreachableAddress = Cause{
	ID:      "unreachable-address",
	Explain: explainUnreachable,
}

func explainUnreachable(n *facts.Node) *Finding {
	dials, ns := map[string]int64{}, map[string]int64{}
	callers := map[string]int64{}
	cl := n.Claim(func(a account.Account, s account.Segment) bool {
		address, failed := strings.CutPrefix(s.Culprit, recording.NoAnswerFrom)
		if s.Actor != account.App || s.State != account.Dial || !failed {
			return false
		}
		dials[address], ns[address] = dials[address]+1, ns[address]+s.Ns()
		callers[a.Call.Client] += s.Ns()
		return true
	})
	if !cl.Matters() {
		return explainSilent(n)
	}
	all := facts.KeysByValue(ns)
	f := finding(n, cl)
	f.Title = fmt.Sprintf("New connections first try %s, which does not answer", format.Name(all[0]))
	f.support(recording.SourceTap, float64(cl.Calls), "calls",
		"%s of %s were made on connections that came after dials that failed, which took up to %s",
		ofSlow(cl.Calls, n), format.Name(facts.KeysByValue(callers)[0]), format.Brief(cl.MaxNs))
	for _, address := range all[:min(len(all), degree.Listed)] {
		f.support(recording.SourceTap, float64(dials[address]), "dials", "%s to %s came to nothing, after %s on "+
			"average", counted(dials[address], "dial"), format.Name(address), format.Brief(ns[address]/dials[address]))
	}
	f.FixSteps = unreachableFix(all[0])
	return f
}

// explainSilent is for watches without the tap: sockets show dials, and no calls.
func explainSilent(n *facts.Node) *Finding {
	all := connection.SilentAddresses(n)
	if len(all) == 0 {
		return nil
	}
	worst := all[0]
	f := &Finding{Of: n.Ledger.Calls(), Grade: Inferred, Samples: worst.Dials}
	who := format.Name(hosts.ProcessName(n.Case, worst.PID, "a process"))
	f.Title = fmt.Sprintf("%s dials %s again and again, which does not answer", who, format.Name(worst.To))
	for _, s := range all[:min(len(all), degree.Listed)] {
		f.support(recording.SourceHost, float64(s.Dials), "dials",
			"%s of %s to %s came to nothing after up to %s: its threads spent %s of their time in them",
			counted(s.Dials, "dial"), format.Name(hosts.ProcessName(n.Case, s.PID, "a process")), format.Name(s.To),
			format.Brief(s.MaxNs), format.Percent(s.Share))
	}
	lost := 0.0
	for _, s := range all {
		lost += float64(s.Ns)
	}
	f.lose(n, facts.LostOpening, lost, worst.Ns/int64(worst.Dials))
	f.doubt(recording.SourceHost, 0, "", "its calls were not seen: whether they wait for these dials is not known")
	if !worst.Calls {
		f.doubt(recording.SourceHost, 0, "", "nor was a connection of it to this server, which has the same port, and "+
			"got as many new connections")
	}
	f.FixSteps = unreachableFix(worst.To)
	return f
}

// unreachableFix ends dials to an address that does not answer.
func unreachableFix(address string) []remedy.Step {
	return []remedy.Step{
		{
			ID: "drop-dead-address", Kind: remedy.Change, Where: "DNS, /etc/hosts or the list of nodes",
			Text: "Take " + format.Name(address) + " out of what the application connects to, or have the server " +
				"listen there and firewalls let it through (getent ahosts NAME lists the addresses of a name in " +
				"their order)",
		},
		orElse(inApplication("short-connect-timeout", "Lower the connect timeout of the client library: it is what "+
			"each dial to a silent address costs")),
		inApplication("keep-connections", "Keep connections open (a pool) instead of making one for each job"),
	}
}
