package cause

import (
	"fmt"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/recording"
)

// dnsSlow: a new connection begins with a question to a name server, and its call waits for the answer.
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

const (
	lookupsFew = 3 // fewer dials behind a lookup are no habit
)

func explainNames(n *facts.Node) *Finding {
	callers := n.Callers()
	var worst *facts.DNSClient
	var ns int64
	for _, a := range n.DNSClients(callers) {
		if len(a.Dials) < lookupsFew && a.MaxUnansweredNs < facts.UnansweredQueryNs {
			continue
		}
		ns += a.QueryNs()
		if worst == nil || a.QueryNs() > worst.QueryNs() {
			worst = a
		}
	}
	if worst == nil {
		return explainOwnNames(n)
	}
	f := findingOfLosses(n.Overhead(callers), n, ns, 0.93)
	if f == nil {
		return explainOwnNames(n)
	}
	times := spreadOfLookups(worst.Dials)
	f.support(recording.SourceTap, fmt.Sprintf("%d connections of %s were dialled right behind a question to a name "+
		"server (port 53); the answers took %s to %s, half of them more than %s", len(worst.Dials), worst.Name,
		facts.Dur(times.P10), facts.Dur(times.P90), facts.Dur(times.Median)), float64(times.Median), "ns")
	var conns []*facts.Conn
	for _, d := range worst.Dials {
		conns = append(conns, d.Conn)
	}
	opening := facts.PercentilesOf(conns, (*facts.Conn).OpeningNs)
	f.support(recording.SourceTap, fmt.Sprintf("the connections themselves took %s then, and a call on them takes %s",
		facts.Dur(opening.Median), facts.Dur(worst.RoundTripNs())), float64(opening.Median), "ns")
	if worst.Unanswered > 0 {
		f.support(recording.SourceTap, fmt.Sprintf("%d questions had no answer within %s, and were asked again: they "+
			"or their answers get lost", worst.Unanswered, facts.Dur(worst.MaxUnansweredNs)), float64(worst.Unanswered),
			"questions")
	}
	f.doubt(recording.SourceTap, "which names were asked for was not looked at: that the dials came right behind is "+
		"why these are taken for the server's", 0, "")
	f.Fix = namesFix(worst.Unanswered > 0, remedy.For(n, remedy.KeepConnections, nil))
	f.See = namesSee
	return f
}

func spreadOfLookups(all []facts.DialAfterQuery) facts.Percentiles {
	var ns []int64
	for _, d := range all {
		ns = append(ns, d.QueryNs)
	}
	return facts.PercentilesOfNs(ns)
}

// explainOwnNames is of the probe's own lookups: the callers' are unknown, but they ask the same name servers if they
// run here.
func explainOwnNames(n *facts.Node) *Finding {
	cl := n.Claim(func(a account.Account, s account.Segment) bool {
		return a.Call.Source == recording.SourceProbe && s.State == account.Dial && s.Culprit == "dns"
	})
	usual := ownLookups(n)
	c := n.Churn()
	share := float64(usual.Median) / (float64(usual.Median) + max(c.CommandsPerConn, 1)*float64(c.CallNs))
	always := usual.Median >= slowNameNs && c.PerSecond*n.Seconds() >= facts.MinRedials && share >= facts.MinShare
	if !cl.Matters() && !always {
		return nil
	}
	f := finding(n, cl, 0.85)
	if cl.Matters() {
		f.support(recording.SourceProbe, fmt.Sprintf("%d slow calls of the probe on new connections waited for the "+
			"name of the server, up to %s in one call", cl.Calls, facts.Dur(cl.MaxNs)), float64(cl.MaxNs), "ns")
	}
	if always {
		f.ExcessShare, f.Confidence = max(f.ExcessShare, share), 0.7
		f.support(recording.SourceProbe, fmt.Sprintf("a new connection of the probe waits %s for the name of the "+
			"server (up to %s), a call on an open one takes %s", facts.Dur(usual.Median), facts.Dur(usual.P90),
			facts.Dur(c.CallNs)),
			float64(usual.Median), "ns")
		f.support(recording.SourceServer, fmt.Sprintf("callers open %.3g connections per second, for %.1f commands "+
			"each", c.PerSecond, c.CommandsPerConn), c.PerSecond, "per second")
	}
	f.doubt(recording.SourceProbe, "whether the callers look names up as often, and at the same name servers, was "+
		"not seen", 0, "")
	f.Fix = namesFix(cl.MaxNs >= facts.UnansweredQueryNs, remedy.For(n, remedy.KeepConnections, nil))
	f.See = namesSee
	return f
}

// slowNameNs: a name server in the same network answers within a millisecond, from its cache.
const slowNameNs = int64(2e6)

// ownLookups are those of the probe's new connections.
func ownLookups(n *facts.Node) facts.Percentiles {
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
	return facts.PercentilesOfNs(ns)
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
