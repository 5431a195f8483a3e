package cause

import (
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// lbHop: a proxy or load balancer has read a call and does not answer, and the calls that it makes are fast.
var lbHop = Cause{
	ID:      "lb-hop",
	Explain: explainHop,
}

func explainHop(n *facts.Node) *Finding {
	next := n.Ledger.Next(n.Address)
	if len(next) == 0 {
		return nil
	}
	several := !hosts.HasSingleReader(n.Case, n.Ledger.PIDAt(n.Address))
	cl := n.ClaimOf(func(a account.Account) (times facts.StateTimes) {
		for _, s := range a.Segments {
			asleep := s.State == recording.Forward && s.Culprit == ""
			// Of several threads, the one that read the call need not be the one that answers it.
			elsewhere := several && s.Actor == account.Server &&
				(s.State == account.Busy || s.State == account.RunQueue)
			if asleep || elsewhere {
				times.Add(s, s.Ns())
			}
		}
		return times
	})
	// A call that was slow and is not recorded may be what one of these calls waited for, and no more than one.
	missing := n.Ledger.Users.Slow - n.Ledger.Users.Recorded
	if cl.Ns == 0 || int64(cl.Calls) <= 2*int64(missing) {
		return nil
	}
	f := finding(n, cl)
	threads := "and its thread slept"
	if several {
		threads = "(it has several threads: which of them had a call is not known)"
	}
	f.support(recording.SourceTap, float64(cl.Calls), "calls", "%s waited while %s had read them %s, up to %s in one "+
		"call", ofSlow(cl.Calls, n), format.Name(n.Ledger.ProcessAt(n.Address)), threads, format.Brief(cl.MaxNs))
	f.support(recording.SourceTap, 0, "calls", "none of the calls that it made meanwhile to %s was slow",
		strings.Join(next, ", "))
	if missing > 0 {
		f.doubt(recording.SourceTap, float64(missing), "calls", "%s not recorded: so many of these may have waited "+
			"for the next hop", format.Count(missing, "more slow call"))
	}
	f.FixSteps = []remedy.Step{
		change("mend-proxy", "Look for what it waits for, and mend that: a free connection to the next hop "+
			"(nutcracker server_connections, HAProxy maxconn of a server), a timer that collects calls (Envoy "+
			"buffer_flush_timeout), a rate limit, a slow log or lookup of its own"),
		orElse(inApplication("no-proxy", "Let the clients call %s without it", strings.Join(next, ", "))),
	}
	return f
}
