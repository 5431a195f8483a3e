package cause

import (
	"maps"
	"math"
	"slices"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// fanoutSlowestShard: a call of the application goes to several nodes at once, and ends with the slowest of them. The
// more nodes it needs, the more of its calls include the slow one. See twemproxy#340: an mget waits for all servers.
var fanoutSlowestShard = Cause{
	ID:         "fanout-slowest-shard",
	Options:    []remedy.Topic{remedy.SplitCalls},
	AfterClass: []Class{ServerStall}, // the shard's own fault makes all shards' calls wait
	Explain:    explainFanout,
}

func explainFanout(n *facts.Node) *Finding {
	all := nodes.Fanouts(n)
	shares := map[string]float64{}
	for process, f := range all {
		if s := f.Share(); s >= degree.Most {
			shares[process] = s
		}
	}
	if len(shares) == 0 {
		return nil
	}
	cl := n.ClaimOf(func(a account.Account) facts.StateTimes {
		if a.Call.Source != recording.SourceTap || facts.IsAdminCommand(a.Call.Op) {
			return nil
		}
		elsewhere := facts.TimesOf(a, func(s account.Segment) bool { return !isOfClient(s) })
		lost := shares[a.Call.Client] * float64(a.ExcessNs-ofClient(a))
		return elsewhere.Times(lost / max(float64(elsewhere.Ns()), 1))
	})
	f := finding(n, cl)
	for _, process := range slices.Sorted(maps.Keys(shares)) {
		f.supportFanout(n, all[process])
	}
	f.FixSteps = fanoutFix(n, shares)
	return f
}

// ofClient is the part of a call's time that the client itself took.
func ofClient(a account.Account) (ns int64) {
	for _, s := range a.Segments {
		if isOfClient(s) {
			ns += s.Ns()
		}
	}
	return min(ns, a.ExcessNs)
}

func isOfClient(s account.Segment) bool { return s.Actor == account.Client || s.Actor == account.App }

func (f *Finding) supportFanout(n *facts.Node, o *nodes.Fanout) {
	f.support(recording.SourceTap, float64(o.WithOthers), "looks",
		"in %d of %d samples of slow calls of %s that waited, it had asked other nodes at the same time "+
			"(up to %d nodes in all), had their replies within %s, and sent them nothing more; "+
			"independent calls would give at most %.0f such samples", o.WithOthers, o.Samples, o.Process, o.MaxNodes,
		format.Brief(o.MaxReplyNs), math.Ceil(o.ByChance))
	here, all := 0, 0 // of its slow calls
	for _, a := range n.Ledger.Slow {
		if a.Call.Source == recording.SourceTap && a.Call.Client == o.Process && !facts.IsAdminCommand(a.Call.Op) {
			all++
			if a.Call.Node == n.Address {
				here++
			}
		}
	}
	if all > 0 {
		f.support(recording.SourceTap, float64(here), "calls",
			"%.0f %% of its slow calls were to this node, one of %d that it uses", 100*float64(here)/float64(all),
			len(o.Nodes)+1)
	}
	if alone := o.Samples - o.WithOthers; alone > 0 {
		f.doubt(recording.SourceTap, float64(alone), "looks",
			"in %d of %d samples of slow calls of %s, no other node had been asked at that time and had answered",
			alone, o.Samples, o.Process)
	}
	if o.AlsoWaiting > 0 {
		f.doubt(recording.SourceTap, float64(o.AlsoWaiting), "requests",
			"%s sent to other nodes at the same time waited as well", counted(o.AlsoWaiting, "request"))
	}
}

func fanoutFix(n *facts.Node, shares map[string]float64) []remedy.Step {
	fix := []remedy.Step{{
		ID: remedy.CureSlowNode, Kind: remedy.Change, Where: format.Name(n.Address),
		Text: "Cure the slow node, or take it out of the path: another finding says why it is slow, where that " +
			"was seen; all other nodes answered in time",
	}, {
		ID: "keys-in-one-slot", Kind: remedy.Change, Restart: "the application",
		Text: "Give keys that are read together one hash tag, {user:7}:name {user:7}:cart, so that they share a " +
			"slot: then one node is asked, not all",
		Risk: "a tag that too many keys share makes one node hot",
	}}
	proxies := 0
	for process := range shares {
		if strings.HasPrefix(process, "nutcracker") {
			proxies++
		}
	}
	if proxies > 0 {
		fix = append(fix, remedy.Step{
			ID: "proxy-hash-tag", Kind: remedy.Setting, Library: "twemproxy", Option: "hash_tag", To: `"{}"`,
			Where: "its pool in nutcracker.yml", Restart: "the proxy",
			Text: "Keys with one hash tag are on one server then; it waits for all servers that an MGET needs",
			Risk: "keys with braces in their names move to other servers: their data is not found there",
		})
	}
	if proxies < len(shares) {
		fix = append(fix, remedy.Steps(n, remedy.SplitCalls, nil)...)
	}
	return append(fix, inApplication("hedged-reads", "Where reads may be a little stale: ask a replica of the slow "+
		"node, too, when the master has not answered within its usual p99, and take the first reply"))
}
