package cause

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
)

// dnsSlow: a new connection begins with a question to a name server, and its call waits for the answer. Catalogue C4.
var dnsSlow = Cause{
	ID:    "dns-slow",
	Title: "Callers wait for a name server before they can connect",
	Layer: "client-host",
	Needs: Needs{
		T0: "new connections of the probe that wait for the lookup of the name under which the server was given",
		T2: "questions of the callers' processes to port 53, how long they took, and the dials behind them",
	},
	Explain: explainNames,
}

// Bounds of lookups.
const (
	lookupsFew = 3 // fewer dials behind a lookup are no habit
	// dialBehind: who looks a name up in order to dial does so at once. The rest of a lookup of two questions may end a
	// little later.
	dialBehindNs = int64(20e6)
	// twin: the questions for IPv4 and IPv6 are sent one behind the other, and one dial waits for both.
	twinNs = int64(500e3)
	// lostQuestion: the shortest that resolvers wait before they ask again is 1 s (resolv.conf(5), options timeout), 5
	// s by default.
	lostQuestionNs = int64(1e9)
)

// asker is what a process waited for name servers.
type asker struct {
	*Caller
	all    spans
	dials  []lookedUp // those that came right behind a lookup
	again  int        // questions that had no answer in time
	lostNs int64      // most that one took
}

type lookedUp struct {
	conn *Conn
	ns   int64 // of the lookup before it
}

// lookups are those of each process, one that asked several questions at once counted once.
func (n *Node) lookups() map[int]*asker {
	out := map[int]*asker{}
	for _, e := range n.Rec.Events {
		if e.Source != recording.SourceTap || e.Kind != recording.KindLookup {
			continue
		}
		pid, err := strconv.Atoi(strings.TrimPrefix(e.Subject, recording.ProcessPrefix))
		if err != nil {
			continue
		}
		if out[pid] == nil {
			out[pid] = &asker{}
		}
		a := out[pid]
		a.all = append(a.all, [2]int64{e.TimeNs, e.TimeNs + e.DurationNs})
		if d := recording.DetailOf[recording.LookupDetail](e); !d.Answered || e.DurationNs >= lostQuestionNs {
			a.again++
			a.lostNs = max(a.lostNs, e.DurationNs)
		}
	}
	return out
}

// askers are the callers of the node that looked names up before they dialled it.
func (n *Node) askers(callers []*Caller) (out []*asker) {
	all := n.lookups()
	for _, c := range callers {
		a := all[c.PID]
		if a == nil || c.PID == 0 {
			continue
		}
		a.Caller = c
		sort.Slice(a.all, func(i, j int) bool { return a.all[i][1] < a.all[j][1] })
		used := make([]bool, len(a.all))
		for _, k := range c.opened() {
			if i, ok := behind(a.all, used, k.OpenNs-k.DialNs); ok {
				a.dials = append(a.dials, lookedUp{k, before(a.all, i)})
			}
		}
		out = append(out, a)
	}
	return out
}

// behind finds the lookup that ended last before a dial began; each is for one dial.
func behind(all spans, used []bool, dial int64) (int, bool) {
	for i := sort.Search(len(all), func(i int) bool { return all[i][1] > dial }) - 1; i >= 0 &&
		dial-all[i][1] <= dialBehindNs; i-- {
		if !used[i] {
			used[i] = true
			for j := i - 1; j >= 0 && all[i][1]-all[j][1] <= dialBehindNs; j-- {
				if d := all[i][0] - all[j][0]; d >= -twinNs && d <= twinNs {
					used[j] = true
					break
				}
			}
			return i, true
		}
	}
	return 0, false
}

// before is the time of a lookup with the one that it repeats: what ended as it began.
func before(all spans, i int) int64 {
	from := all[i][0]
	for j := i - 1; j >= 0; j-- {
		if d := from - all[j][1]; d >= -int64(1e6) && d <= int64(1e6) && all[j][1]-all[j][0] >= lostQuestionNs/2 {
			from = all[j][0]
		}
	}
	return all[i][1] - from
}

func (a *asker) ns() (ns int64) {
	for _, d := range a.dials {
		ns += d.ns
	}
	return ns
}

// lookupNs is what callers waited for names in order to dial this node.
func (n *Node) lookupNs(callers []*Caller) (ns int64) {
	for _, a := range n.askers(callers) {
		ns += a.ns()
	}
	return ns
}

func explainNames(n *Node) *Finding {
	callers := n.callers()
	var worst *asker
	var ns int64
	for _, a := range n.askers(callers) {
		if len(a.dials) < lookupsFew && a.lostNs < lostQuestionNs {
			continue
		}
		ns += a.ns()
		if worst == nil || a.ns() > worst.ns() {
			worst = a
		}
	}
	if worst == nil {
		return explainOwnNames(n)
	}
	f := n.losses(callers).finding(n, ns, 0.93)
	if f == nil {
		return explainOwnNames(n)
	}
	times := spreadOfLookups(worst.dials)
	f.support(recording.SourceTap, fmt.Sprintf("%d connections of %s were dialled right behind a question to a name "+
		"server (port 53); the answers took %s to %s, half of them more than %s", len(worst.dials), worst.Name,
		dur(times.low), dur(times.high), dur(times.mid)), float64(times.mid), "ns")
	var conns []*Conn
	for _, d := range worst.dials {
		conns = append(conns, d.conn)
	}
	opening := spreadOf(conns, (*Conn).openingNs)
	f.support(recording.SourceTap, fmt.Sprintf("the connections themselves took %s then, and a call on them takes %s",
		dur(opening.mid), dur(worst.callNs())), float64(opening.mid), "ns")
	if worst.again > 0 {
		f.support(recording.SourceTap, fmt.Sprintf("%d questions had no answer within %s, and were asked again: they "+
			"or their answers get lost", worst.again, dur(worst.lostNs)), float64(worst.again), "questions")
	}
	f.doubt(recording.SourceTap, "which names were asked for was not looked at: that the dials came right behind is "+
		"why these are taken for the server's", 0, "")
	f.Fix = namesFix(worst.again > 0, n.library(keepFix, keepOrder...))
	f.See = namesSee
	return f
}

func spreadOfLookups(all []lookedUp) spread {
	var ns []int64
	for _, d := range all {
		ns = append(ns, d.ns)
	}
	return spreadOfNs(ns)
}

// explainOwnNames is of the probe's own lookups: the callers' are unknown, but they ask the same name servers if they
// run here.
func explainOwnNames(n *Node) *Finding {
	cl := n.Claim(func(a account.Account, s account.Segment) bool {
		return a.Call.Source == recording.SourceProbe && s.State == account.Dial && s.Culprit == "dns"
	})
	usual := n.ownLookups()
	c := n.churn()
	share := float64(usual.mid) / (float64(usual.mid) + max(c.Commands, 1)*float64(c.CallNs))
	always := usual.mid >= slowNameNs && c.PerSecond*n.Seconds() >= minRedials && share >= minShare
	if !cl.matters() && !always {
		return nil
	}
	f := n.finding(cl, 0.85)
	if cl.matters() {
		f.support(recording.SourceProbe, fmt.Sprintf("%d slow calls of the probe on new connections waited for the "+
			"name of the server, up to %s in one call", cl.Calls, dur(cl.MaxNs)), float64(cl.MaxNs), "ns")
	}
	if always {
		f.ExcessShare, f.Confidence = max(f.ExcessShare, share), 0.7
		f.support(recording.SourceProbe, fmt.Sprintf("a new connection of the probe waits %s for the name of the "+
			"server (up to %s), a call on an open one takes %s", dur(usual.mid), dur(usual.high), dur(c.CallNs)),
			float64(usual.mid), "ns")
		f.support(recording.SourceServer, fmt.Sprintf("callers open %.3g connections per second, for %.1f commands "+
			"each", c.PerSecond, c.Commands), c.PerSecond, "per second")
	}
	f.doubt(recording.SourceProbe, "whether the callers look names up as often, and at the same name servers, was "+
		"not seen", 0, "")
	f.Fix = namesFix(cl.MaxNs >= lostQuestionNs, n.library(keepFix, keepOrder...))
	f.See = namesSee
	return f
}

// slowNameNs: a name server in the same network answers within a millisecond, from its cache.
const slowNameNs = int64(2e6)

// ownLookups are those of the probe's new connections.
func (n *Node) ownLookups() spread {
	var ns []int64
	for _, c := range n.Rec.Calls {
		if c.Source != recording.SourceProbe || c.Node != n.Address || c.Conn != "fresh" {
			continue
		}
		for _, s := range n.Rec.Segments[c.ID] {
			if s.State == account.Dial && s.Culprit == "dns" {
				ns = append(ns, s.ToNs-s.FromNs)
			}
		}
	}
	return spreadOfNs(ns)
}

func namesFix(lost bool, keep []string) []string {
	out := []string{"Find the slow name server: cat /etc/resolv.conf where the caller runs, dig @SERVER NAME there, " +
		"and CoreDNS's or the resolver's own metrics"}
	if lost {
		out = append(out, "Questions that get lost in pairs (IPv4 and IPv6 from one socket, conntrack -S shows "+
			"insert_failed): options single-request-reopen in resolv.conf (glibc), NodeLocal DNSCache in Kubernetes, "+
			"or use-vc")
	}
	return append(append(out,
		"Ask fewer questions: in Kubernetes a name with a dot at its end (redis.prod.svc.cluster.local.) or ndots:1 "+
			"in dnsConfig, as each search domain is asked first; a cache on the host (NodeLocal DNSCache, "+
			"systemd-resolved, nscd)"),
		keep...)
}

var namesSee = []string{
	"https://github.com/kubernetes/kubernetes/issues/56903",
	"https://kubernetes.io/docs/tasks/administer-cluster/nodelocaldns/",
	"https://man7.org/linux/man-pages/man5/resolv.conf.5.html",
}

// keepFix is per library how to dial less often: each dial looks the name up.
var (
	keepFix = map[string]string{
		"go-redis": "go-redis: one client per process, MinIdleConns: 2 and ConnMaxIdleTime: -1 (v8 and before " +
			"IdleTimeout: -1), so that calls find a connection that is open",
		"redigo": "redigo: MaxIdle as high as the callers are many (0, its default, and small values close what is " +
			"given back), IdleTimeout: 0",
		"rueidis": "rueidis keeps its connections: one client per process",
		"jedis":   "Jedis: one JedisPooled per process, maxIdle equal to maxTotal, minIdle above 0",
		"lettuce": "Lettuce keeps its connections: one client per process; " +
			"ClientResources.dnsResolver(DnsResolver.jvmDefault()) and networkaddress.cache.ttl for what the JVM " +
			"remembers",
		"redisson": "Redisson: dnsMonitoringInterval (5 s) asks beside the calls; -1 switches it off",
		"redis-py": "redis-py: one client (pool) per process",
		"ioredis": "ioredis, node-redis: one client per process; Node looks names up in the four threads of libuv: " +
			"UV_THREADPOOL_SIZE where others use them",
	}
	keepOrder = []string{"go-redis", "redigo", "rueidis", "jedis", "lettuce", "redisson", "redis-py", "ioredis"}
)
