package cause

import (
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// lbHop: a proxy or load balancer has read a call and does not answer, and the calls that it makes are fast.
var lbHop = Cause{
	ID:    "lb-hop",
	Title: "A proxy keeps calls waiting: the calls that it makes are fast",
	Layer: "network",
	Needs: Needs{
		T0: "nothing of its own: a proxy has no INFO",
		T1: "nothing of its own: its process sleeps, as without work",
		T2: "the time in which the proxy had read a call, its thread slept, and no call of its own to the next hop " +
			"was slow",
	},
	Mechanism: "A proxy or load balancer has read a call, and sends it on late, or its reply. It waits for " +
		"something of its own: a free connection to the next hop, a timer that collects calls, a rate limit, a " +
		"log. Its process sleeps meanwhile, and the next hop is idle.",
	RuledOut: "Calls of the proxy to the next hop that are as slow as those that it got, or a thread of the proxy " +
		"that is busy or does not get a CPU",
	LookAlikes: []LookAlike{
		{"rtt-floor", "there the way takes the time, of each call alike, and no process has read the call meanwhile"},
		{"process-frozen", "there the process of the proxy is stopped, and its thread is in state T"},
	},
	Remedy: "Find what the proxy waits for in its settings and statistics; measure with and without it.",
	See: []string{
		"https://github.com/twitter/twemproxy/blob/master/notes/recommendation.md",
		"https://docs.haproxy.org/2.6/configuration.html#5.2-maxconn",
		"https://github.com/envoyproxy/envoy/issues/19436",
	},
	Explain: explainHop,
}

func explainHop(n *facts.Node) *Finding {
	next := n.Ledger.Next(n.Address)
	if len(next) == 0 {
		return nil
	}
	several := !n.HasSingleReader(n.Ledger.PIDAt(n.Address))
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
	f.FixSteps = []remedy.Step{{
		ID: "mend-proxy", Kind: remedy.Change,
		Text: "Look for what it waits for, and mend that: a free connection to the next hop (nutcracker " +
			"server_connections, HAProxy maxconn of a server), a timer that collects calls (Envoy " +
			"buffer_flush_timeout), a rate limit, a slow log or lookup of its own",
	}, {
		ID: "no-proxy", Kind: remedy.Change, Or: true, Restart: "the application",
		Text: "Let the clients call " + strings.Join(next, ", ") + " without it",
	}}
	return f
}
