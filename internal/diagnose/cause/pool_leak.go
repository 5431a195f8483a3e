package cause

import (
	"cmp"
	"fmt"
	"slices"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
)

// poolLeak: the application takes connections out of the pool and does not give them back. The pool dials others, until
// it may not any more.
var poolLeak = Cause{
	ID: "pool-leak",
	Title: "The application does not give connections back: they lie idle outside of the pool, and it dials others " +
		"until it is empty",
	Layer: "client",
	Needs: Needs{
		T0: "with --pprof: callers that wait in their pool while connections lie idle by CLIENT LIST. Without it " +
			"nothing: connections that the path forgot look the same to the server",
		T2: "new connections right before calls while others of the same process lie idle and are never used again: " +
			"they stay open, or a garbage collector closes them together after different times",
	},
	Explain: explainLeak,
	Whole:   leakSeen,
}

func explainLeak(n *facts.Node) *Finding {
	callers := n.Callers()
	all := n.Leaks(callers)
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
	f := findingOfLosses(n.Overhead(callers), n, cost, 0.9)
	if f == nil {
		return nil
	}
	f.support(recording.SourceTap, fmt.Sprintf("%s opened %d connections right before calls while others of its own "+
		"lay idle: %d of those were never used again%s", worst.Name, len(worst.Dialled), len(worst.Leaked),
		left(worst)),
		float64(len(worst.Leaked)), "connections")
	f.supportSweeps(worst)
	work := facts.PercentilesOf(worst.Leaked, (*facts.Conn).AppCalls)
	f.support(recording.SourceTap, fmt.Sprintf("they had had %d to %d calls; a pool gives an idle connection to the "+
		"next caller before it dials", work.P10, work.P90), float64(work.Median), "calls")
	f.opening(facts.Redial{Caller: worst.Caller, Dialled: worst.Dialled})
	if clients := n.Info("connected_clients"); len(clients) > 1 && clients[len(clients)-1].Value > clients[0].Value {
		f.support(recording.SourceServer, fmt.Sprintf("connected_clients rose from %.0f to %.0f", clients[0].Value,
			clients[len(clients)-1].Value), clients[len(clients)-1].Value, "clients")
	}
	f.doubt(recording.SourceTap, "a process that makes itself another client object now and then, each with a pool "+
		"of its own, looks the same: then those objects are what is not closed", 0, "")
	f.remote(worst.Caller)
	f.Fix = leakFix(n)
	f.See = leakPages
	return f
}

// left says what became of lost connections that nobody closes.
func left(l facts.Leak) string {
	if len(l.GCSweeps) == 0 {
		return ", and never closed"
	}
	return ""
}

// supportSweeps tells who closed what was lost.
func (f *Finding) supportSweeps(l facts.Leak) {
	if len(l.GCSweeps) == 0 {
		return
	}
	most := slices.MaxFunc(l.GCSweeps, func(a, b facts.GCSweep) int { return cmp.Compare(len(a.Conns), len(b.Conns)) })
	var all []*facts.Conn
	for _, s := range l.GCSweeps {
		all = append(all, s.Conns...)
	}
	idle := facts.PercentilesOf(all, func(k *facts.Conn) int64 { return k.IdleNs })
	f.support(recording.SourceTap, fmt.Sprintf("the process closed %d such ones together, up to %d within %s, after "+
		"%s to %s without a call: no limit and no pool does that, but a garbage collector that finds them lost",
		len(all), len(most.Conns), facts.Dur(most.ToNs-most.FromNs), facts.Dur(idle.P10), facts.Dur(idle.P90)),
		float64(len(all)),
		"connections")
}

var leakPages = []string{"https://commons.apache.org/proper/commons-pool/api-2.12.0/org/apache/commons/pool2/impl/AbandonedConfig.html", "https://pkg.go.dev/github.com/gomodule/redigo/redis#Pool"}

// lastClients are the lines of the newest CLIENT LIST, without slowpath's own.
func lastClients(n *facts.Node) (out []facts.Client) {
	s, ok := n.Rec.SnapshotOf(recording.SourceServer, n.Address, "clients")
	if !ok {
		return nil
	}
	for _, c := range facts.ParseClients(s.Body) {
		if !c.Self {
			out = append(out, c)
		}
	}
	return out
}

// restSeconds: a connection that was not used for so long, by CLIENT LIST, lies idle.
const restSeconds = 2

// leakSeen adds callers that wait in their pool for a connection while most connections lie idle: those that have them
// do not use them.
func leakSeen(c *facts.Case, f *Finding) *Finding {
	w, ok := c.WorstWait(facts.IsPoolWait)
	if !ok || w.Share < minPoolWaitShare {
		return f
	}
	var used int64
	if r, ok := w.App.Waits(func(m stacks.Meaning) bool {
		return m.State == stacks.Reply ||
			m.State == stacks.Send
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
			if open++; cl.Idle >= restSeconds {
				idle, of = idle+1, n
			}
		}
	}
	if idle < 2 || 2*idle < open || used > int64(open-idle) {
		return f
	}
	if f == nil {
		f = &Finding{Of: len(c.Ledger.Slow), Fix: leakFix(of), See: leakPages}
	}
	f.Confidence, f.ExcessShare = 0.9, max(f.ExcessShare, w.Share)
	f.supportWait(w)
	f.support(recording.SourceServer, fmt.Sprintf("%d of %d connections have not been used for %d s and more: "+
		"whoever holds them does nothing with them", idle, open, restSeconds), float64(idle), "connections")
	return f
}

func leakFix(n *facts.Node) []string {
	return append([]string{"Give every connection back, on errors too: find who takes one and returns early (look at " +
		"the callers of the pool's Get, Conn or getResource)"}, remedy.For(n, remedy.ReturnConnections, nil)...)
}
