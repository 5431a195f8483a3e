package cause

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// fanoutSlowestShard: a call of the application is sent to several nodes at once, and ends with the slowest of them:
// the more nodes it needs, the more calls of the application meet the one that is slow. Catalogue D10 (twemproxy#340:
// an mget waits for all servers).
var fanoutSlowestShard = Cause{
	ID: "fanout-slowest-shard",
	Title: "The application asks several nodes at once and waits for the slowest: one slow node slows nearly every " +
		"call",
	Layer: "client",
	Needs: facts.Needs{
		T0: "nothing tells what one process sends to other nodes: the verdict is the slow node's own cause",
		T1: "as T0: what the sockets tell of their last sends is in steps of the kernel's timer, 1 to 10 ms, in " +
			"which clients make many calls one after the other",
		T2: "looks at the connections of the process while a slow call waits: the other nodes were sent to at the " +
			"same moment, answered in time, and were asked nothing more",
	},
	Explain: explainFanout,
}

// What the looks must show.
const (
	// moment is the part of a slow call's wait within which the others were sent: so small that calls which have
	// nothing to do with each other seldom come so close and nothing after them, whatever their rate; see byChance.
	moment = 0.1
	// fanoutShare is the least part of the waits that were looked at: below, the pattern is not that of most slow
	// calls.
	fanoutShare = 0.5
	// fanoutLooks is how many looks make a pattern.
	fanoutLooks = 3
)

// glance is one look at a slow call that waited.
type glance struct {
	recording.BesideDetail
	waitedNs int64
}

// together says whether another node was sent to at the same moment, answered while the slow call waited, and asked
// nothing more. The exchange must reach beyond the send of the slow call: a caller that asks one node after the other
// has its reply before it sends the next.
func (g glance) together(o recording.Beside) bool {
	near := math.Abs(float64(o.AfterNs)) <= moment*float64(g.waitedNs)
	return !o.Waiting && near && o.AfterNs+o.TookNs > 0 && o.TookNs <= g.waitedNs/2
}

// byChance is the most likely that an exchange of calls that have nothing to do with each other looks like that, at
// whatever rate they are sent: the last send of a Poisson process fell within w of the moment, and none came in the
// time since, a. It is greatest at the rate ln((a+w)/a)/w.
func (g glance) byChance(o recording.Beside) float64 {
	m := moment * float64(g.waitedNs)
	w, a := m+min(float64(o.TookNs), m), float64(g.waitedNs)-m
	return w / (a + w) * math.Pow(a/(a+w), a/w)
}

// fanout is what the looks at the slow calls of one process to one node show.
type fanout struct {
	process string
	looks   int
	held    int     // looks in which at least one other node was asked together with the slow call
	chance  float64 // looks that would be so by chance
	nodes   map[string]int
	most    int   // nodes asked together with one call
	tookNs  int64 // longest reply of those
	late    int   // exchanges that were sent at the moment and waited as well
}

// fanouts sorts the looks at slow calls to this node by the process that waited. Calls about the cluster itself go to
// all nodes by their nature.
func fanouts(n *facts.Node) map[string]*fanout {
	out := map[string]*fanout{}
	for _, e := range n.Events(recording.SourceTap, recording.KindBeside) {
		g := glance{recording.DetailOf[recording.BesideDetail](e), e.DurationNs}
		if g.Process == "" || g.waitedNs <= 0 || asksOfItself(g.Op) {
			continue
		}
		f := out[g.Process]
		if f == nil {
			f = &fanout{process: g.Process, nodes: map[string]int{}}
			out[g.Process] = f
		}
		f.take(g)
	}
	return out
}

// asksOfItself knows the commands by which clients learn of the cluster and of their connections.
func asksOfItself(op string) bool {
	name, _, _ := strings.Cut(op, " ")
	switch name {
	case "CLUSTER", "INFO", "PING", "HELLO", "AUTH", "CLIENT", "COMMAND", "CONFIG", "READONLY", "SELECT", "ROLE":
		return true
	}
	return false
}

func (f *fanout) take(g glance) {
	f.looks++
	with, chance := 0, 0.0
	for _, o := range g.Others {
		chance += g.byChance(o)
		switch {
		case g.together(o):
			with++
			f.nodes[o.Node]++
			f.tookNs = max(f.tookNs, o.TookNs)
		case o.Waiting && math.Abs(float64(o.AfterNs)) <= moment*float64(g.waitedNs):
			f.late++
		}
	}
	f.chance += min(chance, 1)
	f.most = max(f.most, with+1)
	if with > 0 {
		f.held++
	}
}

// share is the part of the waits that was one of a fan-out, without what chance gives; 0 where that could be all of it.
func (f *fanout) share() float64 {
	beyond := float64(f.held) - f.chance
	if f.held < fanoutLooks || beyond < 3*math.Sqrt(f.chance) || float64(f.looks) <= f.chance {
		return 0
	}
	return beyond / (float64(f.looks) - f.chance)
}

func explainFanout(n *facts.Node) *Finding {
	all := fanouts(n)
	shares := map[string]float64{}
	for process, f := range all {
		if s := f.share(); s >= fanoutShare {
			shares[process] = s
		}
	}
	if len(shares) == 0 {
		return nil
	}
	cl := n.ClaimOf(func(a account.Account) int64 {
		if a.Call.Source != recording.SourceTap || asksOfItself(a.Call.Op) {
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

func (f *Finding) supportFanout(n *facts.Node, o *fanout) {
	f.support(recording.SourceTap, fmt.Sprintf("in %d of %d looks at slow calls of %s that waited, it had sent to "+
		"other nodes at the same moment (up to %d nodes in all), had their replies within %s, and asked them nothing "+
		"more; "+
		"of independent calls at most %.0f looks would be so", o.held, o.looks, o.process, o.most, facts.Dur(o.tookNs),
		math.Ceil(o.chance)), float64(o.held), "looks")
	if p := othersSlow(n, o.process); p.all > 0 {
		f.support(recording.SourceTap, fmt.Sprintf("%.0f %% of its slow calls were to this node, one of %d that it "+
			"asks", 100*float64(p.here)/float64(p.all), len(o.nodes)+1), float64(p.here), "calls")
	}
	if alone := o.looks - o.held; alone > 0 {
		f.doubt(recording.SourceTap, fmt.Sprintf("in %d of %d looks at slow calls of %s no other node had been asked "+
			"at that moment and answered", alone, o.looks, o.process), float64(alone), "looks")
	}
	if o.late > 0 {
		f.doubt(recording.SourceTap, fmt.Sprintf("%d requests that were sent at the same moment to other nodes "+
			"waited as well", o.late), float64(o.late), "requests")
	}
}

type slowCalls struct{ here, all int }

// othersSlow is how many of a process' slow calls were to this node, and to all.
func othersSlow(n *facts.Node, process string) (p slowCalls) {
	for _, a := range n.Ledger.Slow {
		if a.Call.Source != recording.SourceTap || a.Call.Client != process || asksOfItself(a.Call.Op) {
			continue
		}
		p.all++
		if a.Call.Node == n.Address {
			p.here++
		}
	}
	return p
}

// supportAlone says, in the finding of a cause of the slow node itself, that the calls which waited for it were no
// parts of others.
func (f *Finding) supportAlone(n *facts.Node) {
	looks, held, chance := 0, 0, 0.0
	for _, o := range fanouts(n) {
		looks, held, chance = looks+o.looks, held+o.held, chance+o.chance
		if o.share() >= fanoutShare {
			return
		}
	}
	if looks >= fanoutLooks {
		f.support(recording.SourceTap, fmt.Sprintf("its callers asked one node at a time: in %d of %d looks at slow "+
			"calls that waited, another node had been sent to at the same moment (by chance up to %.0f)", held, looks,
			math.Ceil(chance)), float64(held), "looks")
	}
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
		fix = append(fix, n.Library(fanoutLines, "go-redis", "rueidis", "redigo", "lettuce", "jedis", "redis-py",
			"node-redis", "ioredis")...)
	}
	return append(fix, "Reads that may be a little old: ask a replica of the slow node too once the master has not "+
		"answered within its usual p99 (a hedged read), and take the first reply")
}

// fanoutLines are what each library can do.
var fanoutLines = map[string]string{
	"go-redis": "go-redis: one Pipeline per hash tag; or ContextTimeoutEnabled: true (9.0 and later), a context " +
		"with a deadline for Exec, and what came: each Cmder has an error of its own",
	"rueidis": "rueidis: MGet and DoMulti ask all nodes of the keys at once: one call per hash tag; a context " +
		"with a deadline; DoMultiCache and MGetCache keep what is read often in the process",
	"redigo": "redigo: one MGET per hash tag",
	"lettuce": "Lettuce: mget of a cluster is split by slot and waits for all: mget of keys with one hash tag; or " +
		"async().get for each key and LettuceFutures.awaitAll with a timeout, which keeps what came",
	"jedis": "Jedis: MGET needs one slot; ClusterPipeline.sync waits for all nodes: one pipeline per hash tag",
	"redis-py": "redis-py: mget_nonatomic and ClusterPipeline wait for all nodes: mget of keys with one hash tag; " +
		"socket_timeout bounds the wait",
	"node-redis": "node-redis: Promise.allSettled over the keys, each in a race with a timer, and not Promise.all",
	"ioredis":    "ioredis: Promise.allSettled over the keys with commandTimeout, and not Promise.all",
}
