package cause

import (
	"cmp"
	"slices"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
)

// poolLeak: the application takes connections from the pool and does not return them. The pool dials others, up to its
// limit.
var poolLeak = Cause{
	ID:      "pool-leak",
	Class:   Redial,
	Options: []remedy.Topic{remedy.ReturnConnections},
	Explain: explainLeak,
	Whole:   leakSeen,
}

func explainLeak(n *facts.Node) *Finding {
	callers := caller.Callers(n)
	all := connection.Leaks(n, callers)
	if len(all) == 0 {
		return nil
	}
	var cost int64
	worst := all[0]
	for _, l := range all {
		for _, k := range l.Dialled {
			cost += k.OpeningNs()
		}
		if len(l.Leaked) > len(worst.Leaked) {
			worst = l
		}
	}
	f := findingOfLosses(connection.OverheadOf(n, callers), n, cost)
	if f == nil {
		return nil
	}
	left := ", and never closed"
	if len(worst.GCSweeps) > 0 {
		left = ""
	}
	f.support(recording.SourceTap, float64(len(worst.Leaked)), "connections",
		"%s opened %s right before calls while its other ones were idle: %d of those were never used again%s",
		worst.Name, counted(len(worst.Dialled), "connection"), len(worst.Leaked), left)
	f.supportSweeps(worst)
	work := caller.PercentilesOf(worst.Leaked, (*caller.Conn).AppCalls)
	f.support(recording.SourceTap, float64(work.Median), "calls", "they had made %d to %d calls; a pool gives an idle "+
		"connection to the next caller before it dials", work.P10, work.P90)
	f.supportOpening(connection.Redial{Caller: worst.Caller, Dialled: worst.Dialled})
	f.doubt(recording.SourceTap, 0, "", "a process that now and then creates another client object with its own pool "+
		"looks the same: then those objects are never closed")
	f.doubtRemote(worst.Caller)
	f.FixSteps = leakFix(n, worst.Caller)
	return f
}

// supportSweeps says what closed the lost connections.
func (f *Finding) supportSweeps(l connection.Leak) {
	if len(l.GCSweeps) == 0 {
		return
	}
	most := slices.MaxFunc(l.GCSweeps,
		func(a, b connection.GCSweep) int { return cmp.Compare(len(a.Conns), len(b.Conns)) })
	var all []*caller.Conn
	for _, s := range l.GCSweeps {
		all = append(all, s.Conns...)
	}
	idle := caller.PercentilesOf(all, func(k *caller.Conn) int64 { return k.IdleNs })
	f.support(recording.SourceTap, float64(len(all)), "connections",
		"the process closed %d such connections together, up to %d within %s, after %s to %s without a call: "+
			"no idle limit and no pool does that; a garbage collector does", len(all), len(most.Conns),
		format.Brief(most.ToNs-most.FromNs), format.Brief(idle.P10), format.Brief(idle.P90))
}

// lastClients are the lines of the newest CLIENT LIST, without slowpath's own.
func lastClients(n *facts.Node) (out []caller.Client) {
	s, ok := n.Rec.SnapshotOf(recording.SourceServer, n.Address, "clients")
	if !ok {
		return nil
	}
	for _, c := range caller.ParseClients(s.Body) {
		if !c.Self {
			out = append(out, c)
		}
	}
	return out
}

// leakSeen adds callers that wait in their pool for a connection while most connections are idle: their holders do not
// use them.
func leakSeen(c *facts.Case, f *Finding) *Finding {
	w, ok := hosts.WorstWait(c, hosts.IsPoolWait)
	if !ok || w.Share < minPoolWaitShare {
		return f
	}
	var used int64
	if r, ok := w.App.Waits(func(m stacks.Meaning) bool {
		return m.State == stacks.Reply || m.State == stacks.Send
	}); ok {
		used = r.Count
	}
	open, idle := 0, 0
	var of *facts.Node
	for _, n := range c.Nodes {
		for _, cl := range lastClients(n) {
			if cl.Flags != "N" {
				continue
			}
			if open++; cl.Idle > 1 {
				idle, of = idle+1, n
			}
		}
	}
	if idle < degree.Several || 2*idle < open || used > int64(open-idle) {
		return f
	}
	if f == nil {
		f = &Finding{Of: c.Ledger.Calls(), FixSteps: leakFix(of)}
		f.loseInPool(c, w)
	}
	f.supportWait(w)
	f.support(recording.SourceServer, float64(idle), "connections",
		"%d of %d connections have been unused for at least 2 s: their holders do nothing with them", idle, open)
	return f
}

func leakFix(n *facts.Node, of ...*caller.Caller) []remedy.Step {
	return offered(n, remedy.ReturnConnections, nil, "Find the code that takes a connection and "+
		"returns early, on errors too: the callers of the pool's Get, Conn or getResource", of...)
}
