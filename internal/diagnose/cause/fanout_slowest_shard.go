package cause

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/recording"
)

// fanoutSlowestShard: a call of the application is sent to several nodes at once, and ends with the slowest of them:
// the more nodes it needs, the more calls of the application meet the one that is slow. See twemproxy#340:
// an mget waits for all servers.
var fanoutSlowestShard = Cause{
	ID: "fanout-slowest-shard",
	Title: "The application asks several nodes at once and waits for the slowest: one slow node slows nearly every " +
		"call",
	Layer: "client",
	Needs: Needs{
		T0: "nothing tells what one process sends to other nodes: the verdict is the slow node's own cause",
		T1: "as T0: what the sockets tell of their last sends is in steps of the kernel's timer, 1 to 10 ms, in " +
			"which clients make many calls one after the other",
		T2: "looks at the connections of the process while a slow call waits: the other nodes were sent to at the " +
			"same moment, answered in time, and were asked nothing more",
	},
	Explain: explainFanout,
}

func explainFanout(n *facts.Node) *Finding {
	all := n.Fanouts()
	shares := map[string]float64{}
	for process, f := range all {
		if s := f.Share(); s >= minFanoutShare {
			shares[process] = s
		}
	}
	if len(shares) == 0 {
		return nil
	}
	cl := n.ClaimOf(func(a account.Account) int64 {
		if a.Call.Source != recording.SourceTap || facts.IsAdminCommand(a.Call.Op) {
			return 0
		}
		return int64(shares[a.Call.Client] * float64(a.ExcessNs-ofClient(a)))
	})
	f := finding(n, cl, 0.97)
	for _, process := range slices.Sorted(maps.Keys(shares)) {
		f.Confidence = min(f.Confidence, max(shares[process], 0.6))
		f.supportFanout(n, all[process])
	}
	f.Leads = mostlyOf(n, cl)
	f.Fix = fanoutFix(n, shares)
	f.See = []string{
		"https://github.com/twitter/twemproxy/issues/340",
		"https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#hash-tags",
		"https://research.google/pubs/the-tail-at-scale/",
	}
	return f
}

// ofClient is the part of a call's time that was the client's own.
func ofClient(a account.Account) (ns int64) {
	for _, s := range a.Segments {
		if s.Actor == account.Client || s.Actor == account.App {
			ns += s.Ns()
		}
	}
	return min(ns, a.ExcessNs)
}

// mostlyOf reports whether a claim has most of the excess of the clients' slow calls, of all nodes.
func mostlyOf(n *facts.Node, cl facts.Claim) bool {
	all := 0.0
	for _, a := range n.Ledger.Slow {
		if a.Call.Source == recording.SourceTap {
			all += float64(a.ExcessNs) * a.Weight
		}
	}
	return float64(cl.Ns) > all/2
}

func (f *Finding) supportFanout(n *facts.Node, o *facts.Fanout) {
	f.support(recording.SourceTap, fmt.Sprintf("in %d of %d looks at slow calls of %s that waited, it had sent to "+
		"other nodes at the same moment (up to %d nodes in all), had their replies within %s, and asked them nothing "+
		"more; "+
		"of independent calls at most %.0f looks would be so", o.WithOthers, o.Samples, o.Process, o.MaxNodes,
		facts.Dur(o.MaxReplyNs),
		math.Ceil(o.ByChance)), float64(o.WithOthers), "looks")
	if p := othersSlow(n, o.Process); p.all > 0 {
		f.support(recording.SourceTap, fmt.Sprintf("%.0f %% of its slow calls were to this node, one of %d that it "+
			"asks", 100*float64(p.here)/float64(p.all), len(o.Nodes)+1), float64(p.here), "calls")
	}
	if alone := o.Samples - o.WithOthers; alone > 0 {
		f.doubt(recording.SourceTap, fmt.Sprintf("in %d of %d looks at slow calls of %s no other node had been asked "+
			"at that moment and answered", alone, o.Samples, o.Process), float64(alone), "looks")
	}
	if o.AlsoWaiting > 0 {
		f.doubt(recording.SourceTap, fmt.Sprintf("%d requests that were sent at the same moment to other nodes "+
			"waited as well", o.AlsoWaiting), float64(o.AlsoWaiting), "requests")
	}
}

type slowCalls struct{ here, all int }

// othersSlow is how many of a process' slow calls were to this node, and to all.
func othersSlow(n *facts.Node, process string) (p slowCalls) {
	for _, a := range n.Ledger.Slow {
		if a.Call.Source != recording.SourceTap || a.Call.Client != process || facts.IsAdminCommand(a.Call.Op) {
			continue
		}
		p.all++
		if a.Call.Node == n.Address {
			p.here++
		}
	}
	return p
}

func fanoutFix(n *facts.Node, shares map[string]float64) []string {
	fix := []string{"Mend " + n.Address + ", or take it out of the path: why it is slow is the finding after this " +
		"one, where it was seen; all others answered in time"}
	proxies := 0
	for process := range shares {
		if strings.HasPrefix(process, "nutcracker") {
			proxies++
		}
	}
	if proxies > 0 {
		fix = append(fix,
			`twemproxy: hash_tag: "{}" in its pool, so that the keys of one MGET can be on one server (it waits for all of its servers); timeout: bounds the wait, and the call fails`)
	}
	fix = append(fix, "Give keys that are read together one hash tag, {user:7}:name {user:7}:cart, so that they "+
		"share a slot: one node is asked, and not all (a tag that all keys share makes one node hot)",
		"Ask for fewer keys at once, from fewer nodes; start with what the page cannot do without, and give the rest "+
			"a deadline of its own")
	if proxies < len(shares) {
		fix = append(fix, remedy.For(n, remedy.SplitCalls, nil)...)
	}
	return append(fix, "Reads that may be a little old: ask a replica of the slow node too once the master has not "+
		"answered within its usual p99 (a hedged read), and take the first reply")
}
