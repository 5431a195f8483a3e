package cause

import (
	"fmt"
	"slices"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// dialHerd: the pool is cold, and all callers dial at once, or wait one after the other for a lock that is held while
// dialling.
var dialHerd = Cause{
	ID:      "dial-herd-or-serialised-dial",
	Class:   Redial,
	Options: []remedy.Topic{remedy.WarmPool, remedy.OneDialAtATime},
	// Lost connections, and callers that were refused, come back like that.
	After:   []string{"reconnect-herd", "maxclients", "accept-backlog-overflow"},
	Explain: explainDialHerd,
}

func costNs(s connection.DialBurst) (ns int64) {
	for i, k := range s.Conns {
		ns += k.OpeningNs()
		if s.Serial {
			ns += int64(i) * k.DialNs // each later caller waits for all before it
		}
	}
	return ns
}

func explainDialHerd(n *facts.Node) *Finding {
	callers := caller.Callers(n)
	all := connection.DialBursts(n, callers)
	if len(all) == 0 {
		return nil
	}
	var cost int64
	var spans facts.Spans
	var conns []*caller.Conn
	worst := all[0]
	for _, s := range all {
		cost += costNs(s)
		conns = append(conns, s.Conns...)
		for _, k := range s.Conns {
			spans = append(spans, facts.Span{FromNs: k.Opening().FromNs, ToNs: k.Opening().ToNs})
		}
		if costNs(s) > costNs(worst) {
			worst = s
		}
	}
	f, _ := openedTogether(n, callers, facts.MergeSpans(spans), cost,
		caller.PercentilesOf(conns, (*caller.Conn).OpeningNs).P90)
	if f == nil {
		return nil
	}
	list := connection.Openings(worst.Conns)
	took := list[len(list)-1].ToNs - list[0].FromNs
	if worst.Serial {
		f.Title = "The client dials one connection after the other: calls wait for a lock that is held while dialling"
		f.support(recording.SourceTap, float64(len(list)), "connections",
			"%s opened %s one after the other in %s: each SYN left right after the dial before it ended, none at the "+
				"same time", worst.Name, counted(len(list), "connection"), format.Brief(took))
	} else {
		f.support(recording.SourceTap, float64(len(list)), "connections",
			"%s opened %s within %s, up to %d at the same time, each with a call right after its handshake", worst.Name,
			counted(len(list), "connection"), format.Brief(took), facts.MaxOverlap(list))
	}
	opening := caller.PercentilesOf(worst.Conns, (*caller.Conn).OpeningNs)
	f.support(recording.SourceTap, float64(opening.Median), "ns",
		"each took %s before its first command (p90 %s); a call takes %s", format.Brief(opening.Median),
		format.Brief(opening.P90), format.Brief(worst.RoundTripNs()))
	alone := connection.ConnectionCostOf(n).OpeningNs
	if fresh, ok := n.Ledger.Path(n.Address, "fresh"); ok && fresh.Calls > 0 && opening.Median >= 2*alone {
		f.support(recording.SourceProbe, float64(alone), "ns",
			"a connection of slowpath's own costs %s: opened together they slow each other down", format.Brief(alone))
	}
	f.support(recording.SourceTap, float64(len(list)), "connections",
		"none of them replaced a closed one, and most were kept: the pool was empty or too small, and filled")
	if len(all) > 1 {
		var whose []*caller.Caller
		for _, s := range all {
			if !slices.Contains(whose, s.Caller) {
				whose = append(whose, s.Caller)
			}
		}
		f.support(recording.SourceTap, float64(len(all)), "times",
			"that happened %d times during the watch, to %s", len(all), caller.CallerNames(whose))
	}
	f.doubtRemote(worst.Caller)
	f.FixSteps = dialHerdFix(n, worst)
	return f
}

func dialHerdFix(n *facts.Node, s connection.DialBurst) []remedy.Step {
	needed := int(float64(s.AppCalls())/n.Seconds()*float64(s.RoundTripNs())/1e9*2) + 2
	topic := remedy.WarmPool
	if s.Serial {
		topic = remedy.OneDialAtATime
	}
	return offered(n, topic, remedy.Values{"connections": min(needed, len(s.Conns))}, fmt.Sprintf(
		"Open connections before the instance takes traffic (readiness): about %d are enough for %s calls per "+
			"second of %s", min(needed, len(s.Conns)), format.Rounded(float64(s.AppCalls())/n.Seconds()),
		format.Brief(s.RoundTripNs())), s.Caller)
}
