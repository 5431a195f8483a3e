package cause

import (
	"fmt"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// dnsSlow: a new connection begins with a DNS query, and its call waits for the answer.
var dnsSlow = Cause{
	ID:      "dns-slow",
	Options: []remedy.Topic{remedy.KeepConnections},
	Explain: explainDNS,
}

func explainDNS(n *facts.Node) *Finding {
	callers := caller.Callers(n)
	var worst *connection.DNSClient
	var ns int64
	for _, a := range connection.DNSClients(n, callers) {
		if len(a.Dials) < degree.Several && a.MaxUnansweredNs < connection.UnansweredQueryNs {
			continue
		}
		ns += a.QueryNs()
		if worst == nil || a.QueryNs() > worst.QueryNs() {
			worst = a
		}
	}
	if worst == nil {
		return explainOwnQueries(n)
	}
	f := findingOfLosses(connection.OverheadOf(n, callers), n, ns)
	if f == nil {
		return explainOwnQueries(n)
	}
	var conns []*caller.Conn
	var queries []int64
	for _, d := range worst.Dials {
		conns, queries = append(conns, d.Conn), append(queries, d.QueryNs)
	}
	times := facts.PercentilesOfNs(queries)
	f.support(recording.SourceTap, float64(times.Median), "ns",
		"%s of %s began with a DNS query (port 53); the answers took %s to %s, median %s",
		counted(len(worst.Dials), "connection"), worst.Name, format.Brief(times.P10), format.Brief(times.P90),
		format.Brief(times.Median))
	opening := caller.PercentilesOf(conns, (*caller.Conn).OpeningNs)
	f.support(recording.SourceTap, float64(opening.Median), "ns",
		"the connections themselves then took %s; a call on them takes %s", format.Brief(opening.Median),
		format.Brief(worst.RoundTripNs()))
	f.supportUnanswered(worst)
	f.doubt(recording.SourceTap, 0, "",
		"the names in the queries were not read: they are taken for the server's because the dials came right after")
	f.FixSteps = dnsFix(n, worst)
	return f
}

// supportUnanswered says which queries had no answer, and of which DNS server.
func (f *Finding) supportUnanswered(a *connection.DNSClient) {
	if a.Unanswered == 0 {
		return
	}
	silent, answering := a.SilentServer(), a.AnsweringServer()
	text := ": requests or answers get lost"
	switch {
	case silent == nil:
	case silent.Unanswered == a.Unanswered:
		text = fmt.Sprintf(": all of DNS server %s, which answered nobody on the callers' host", silent.Address)
	default:
		text = fmt.Sprintf(": %d of them of DNS server %s, which answered nobody on the callers' host",
			silent.Unanswered, silent.Address)
	}
	f.support(recording.SourceTap, float64(a.Unanswered), "questions",
		"%s without an answer within %s, and asked again%s", counted(a.Unanswered, "DNS request"),
		format.Brief(a.MaxUnansweredNs), text)
	if silent != nil && answering != nil {
		f.support(recording.SourceTap, float64(answering.Answers), "answers",
			"DNS server %s, which was asked, too, does answer", answering.Address)
	}
	if a.HalfAnswered > 0 {
		f.support(recording.SourceTap, float64(a.HalfAnswered), "questions",
			"%d of them had one answer to two questions from one socket, for IPv4 and IPv6", a.HalfAnswered)
	}
}

// explainOwnQueries judges the probe's own DNS queries: the callers' are unknown, but they use the same DNS servers if
// they run here.
func explainOwnQueries(n *facts.Node) *Finding {
	cl := n.Claim(func(a account.Account, s account.Segment) bool {
		return a.Call.Source == recording.SourceProbe && s.State == account.Dial && s.Culprit == "dns"
	})
	lookup := ownQueries(n)
	c := connection.ChurnOf(n)
	share := float64(lookup.Median) / (float64(lookup.Median) + max(c.CommandsPerConn, 1)*float64(c.CallNs))
	always := lookup.Median >= n.NoticedNs() && c.PerSecond*n.Seconds() >= connection.MinRedials &&
		share >= facts.MinShare
	if !cl.Matters() && !always {
		return nil
	}
	f := finding(n, cl)
	if cl.Matters() {
		f.support(recording.SourceProbe, float64(cl.MaxNs), "ns",
			"%s of the probe on new connections waited for the lookup of the server's name, up to %s in one call",
			counted(cl.Calls, "slow call"), format.Brief(cl.MaxNs))
	}
	if always {
		f.loseBeside(n, facts.LostOpening, share, lookup.Median)
		f.support(recording.SourceProbe, float64(lookup.Median), "ns",
			"a new connection of the probe waits %s for the lookup of the server's name (up to %s); a call on an open "+
				"one takes %s", format.Brief(lookup.Median), format.Brief(lookup.P90), format.Brief(c.CallNs))
		f.support(recording.SourceServer, c.PerSecond, "per second",
			"callers open %s connections per second, for %.1f commands each", format.Rounded(c.PerSecond),
			c.CommandsPerConn)
	}
	f.doubt(recording.SourceProbe, 0, "",
		"whether the callers look names up as often, and at the same DNS servers, was not seen")
	f.FixSteps = append(remedy.Steps(n, remedy.KeepConnections, nil), dnsCache, fasterDNSServer)
	return f
}

// ownQueries are those of the probe's new connections.
func ownQueries(n *facts.Node) facts.Percentiles {
	var ns []int64
	for _, c := range n.Rec.Calls {
		if c.Source != recording.SourceProbe || c.Node != n.Address || c.Conn != "fresh" {
			continue
		}
		for _, s := range n.Rec.SegmentsOf(c.ID) {
			if s.State == account.Dial && s.Culprit == "dns" {
				ns = append(ns, s.ToNs-s.FromNs)
			}
		}
	}
	return facts.PercentilesOfNs(ns)
}

// resolvConf is where resolvers have their servers and options from.
const resolvConf = "/etc/resolv.conf of the callers' host, or dnsConfig of their pod"

// dnsFix leaves out a DNS server that does not answer first, and else asks for names less often, which callers can do
// without the DNS server's owner.
func dnsFix(n *facts.Node, a *connection.DNSClient) (fix []remedy.Step) {
	silent, answering := a.SilentServer(), a.AnsweringServer()
	switch {
	case silent != nil && answering != nil:
		fix = append(fix, remedy.Step{
			ID: "leave-silent-dns-server", Kind: remedy.Change, Restart: "the application",
			Where: resolvConf, Undo: "put the line back",
			Text: fmt.Sprintf("Remove the line nameserver %s, or put it below nameserver %s: it answered none of %s, "+
				"and %s does answer", silent.Address, answering.Address, counted(silent.Unanswered, "request"),
				answering.Address),
		})
	case silent != nil:
		fix = append(fix, change("leave-silent-dns-server", "Find out why DNS server %s does not answer "+
			"(dig @%s): it answered none of %s. Else name another one in %s", silent.Address, silent.Address,
			counted(silent.Unanswered, "request"), resolvConf))
	}
	if a.MaxUnansweredNs >= 2*connection.UnansweredQueryNs { // it is no less already
		fix = append(fix, remedy.Step{
			ID: "ask-again-sooner", Kind: remedy.Setting, Library: "resolver", Option: "options",
			To: "timeout:1 attempts:2", Where: resolvConf, Restart: "the application",
			Text: fmt.Sprintf("Each request without an answer takes %s now", format.Brief(a.MaxUnansweredNs)),
		})
	}
	fix = append(fix, remedy.Steps(n, remedy.KeepConnections, nil, a.Caller)...)
	if a.HalfAnswered > 0 {
		fix = append(fix, remedy.Step{
			ID: "own-socket-per-query", Kind: remedy.Setting, Library: "glibc", Option: "options",
			To: "single-request-reopen", Where: resolvConf, Restart: "the application",
			Text: "Against queries that are lost in pairs, IPv4 and IPv6 from one socket (conntrack -S shows " +
				"insert_failed); use-vc asks by TCP",
		})
	}
	if onlyOneServerLost(a, silent) {
		return fix
	}
	return append(fix, dnsCache, fasterDNSServer)
}

// onlyOneServerLost reports whether what callers waited for are requests to a DNS server that does not answer: little
// of their time went to others.
func onlyOneServerLost(a *connection.DNSClient, silent *connection.DNSServer) bool {
	var others int64
	for _, d := range a.Dials {
		if !d.Repeated {
			others += d.QueryNs
		}
	}
	return silent != nil && silent.Unanswered == a.Unanswered &&
		float64(others) < facts.MinShare*float64(a.QueryNs())
}

var dnsCache = remedy.Step{
	ID: "dns-cache", Kind: remedy.Change,
	Text: "Answer from a cache on the callers' host: NodeLocal DNSCache in Kubernetes, else systemd-resolved or " +
		"nscd. In Kubernetes also a name with a final dot (redis.prod.svc.cluster.local.) or ndots:1 in " +
		"dnsConfig, since each search domain is tried first",
}

var fasterDNSServer = remedy.Step{
	ID: "faster-dns-server", Kind: remedy.Change,
	Text: "Find out why the DNS server is slow: dig shows its time, /etc/resolv.conf of the callers' host which " +
		"it is, and the metrics of CoreDNS or of the resolver what it waits for",
}
