package nodes

import (
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/recording"
)

// Failure is how a call of slowpath failed.
type Failure string

// Failures, by what the caller's kernel or the server answered.
const (
	// FailedRefused: the port refused the connection (RST to the SYN): nothing listens, or a firewall rejects it.
	FailedRefused Failure = "refused"
	// FailedClosed: connected, and closed or reset before a reply.
	FailedClosed Failure = "closed"
	// FailedUnreachable: no answer to the SYN, or the path says that there is no such host.
	FailedUnreachable Failure = "unreachable"
	// FailedNoReply: connected, and no reply in time.
	FailedNoReply Failure = "no reply"
	// failedReply: an error reply.
	failedReply Failure = "error reply"
	// failedOther: TLS, DNS, the login, this host.
	failedOther Failure = "other"
)

// unfinished is the error of a call of the probe that had no reply when the watch ended. It has not failed.
const unfinished = "unfinished when the watch ended"

// failureTexts are what tells the errors of a dial and of a session apart (internal/wire/target, internal/wire/session;
// a test makes those errors). The first that matches decides.
var failureTexts = []struct {
	part    string
	failure Failure
}{
	{"connection refused", FailedRefused},
	{"no such socket", FailedRefused},
	{"no reply to", FailedNoReply},
	{"resets the connection", FailedClosed},
	{"closed", FailedClosed},
	{"TLS", failedOther},
	{"DNS", failedOther},
	{"unreachable", FailedUnreachable},
	{"timeout: no answer", FailedUnreachable},
	{"listen backlog full", FailedNoReply},
}

// failureOf classifies the error of a call, or the message of an error event; empty for none.
func failureOf(text string) Failure {
	if text == "" || text == unfinished {
		return ""
	}
	if hadReply(recording.Call{Error: text}) {
		return failedReply
	}
	for _, one := range failureTexts {
		if strings.Contains(text, one.part) {
			return one.failure
		}
	}
	return failedOther
}

// OwnFailures are the calls of slowpath's probe that failed.
type OwnFailures struct {
	// Calls is the number of all its calls, Failed of those that failed or, during an outage, had no reply.
	Calls, Failed int
	// Reasons are the numbers of the failed ones by the code of an error reply, or by Failure.
	Reasons facts.NameCounts
}

// OwnFailuresOf are those of all nodes.
func OwnFailuresOf(c *facts.Case) OwnFailures {
	all := OwnFailures{Reasons: facts.NameCounts{}}
	for _, n := range c.Nodes {
		one := ownFailures(n)
		all.Calls += one.Calls
		all.Failed += one.Failed
		for reason, count := range one.Reasons {
			all.Reasons[reason] += count
		}
	}
	return all
}

func ownFailures(n *facts.Node) OwnFailures {
	f := OwnFailures{Reasons: facts.NameCounts{}}
	var silent facts.Spans
	for _, o := range Outages(n) {
		silent = append(silent, o.Span)
	}
	for _, c := range n.Rec.Calls {
		if c.Node != n.Address || c.Source != recording.SourceProbe {
			continue
		}
		f.Calls++
		reason := string(failureOf(c.Error))
		switch {
		case c.Error == unfinished && silent.OverlapNs(c.IntendedNs, c.EndNs) > 0:
			reason = string(FailedNoReply)
		case isRedirect(c.Error):
			reason = ""
		case reason == string(failedReply):
			reason = c.Error
		}
		if reason != "" {
			f.Failed++
			f.Reasons[reason]++
		}
	}
	return f
}

// isRedirect reports whether an error reply sends a call of a cluster to another node: the slot that the probe reads
// moves. Clients follow it.
func isRedirect(code string) bool { return code == "MOVED" || code == "ASK" || code == "TRYAGAIN" }

// LostCalls are calls of the server's users that never had a reply, because their connection was taken from them.
type LostCalls struct {
	// Calls is their number, Conns that of the connections.
	Calls, Conns int
	// OfProxies are those of Calls that proxies among the nodes made: who called the proxy may have had a reply.
	OfProxies int
	// RefusedDials is the number of connections that could not be made, because the port refused them.
	RefusedDials int
	// Callers are the numbers of both by caller.
	Callers facts.NameCounts
}

// LostCallsOf are those in a stretch of time. A client that gives up, or ends, is not meant: it closes its own end.
func LostCallsOf(n *facts.Node, w facts.Span) LostCalls {
	l := LostCalls{Callers: facts.NameCounts{}}
	for _, c := range caller.Callers(n) {
		for _, k := range c.Conns {
			if k.Lost() > 0 && k.ServerClosedNs >= w.FromNs && k.ServerClosedNs <= w.ToNs && k.ServerClosedNs > 0 {
				l.Calls += k.Lost()
				if n.Ledger.IsProxyProcess(c.PID) {
					l.OfProxies += k.Lost()
				}
				l.Conns++
				l.Callers[c.Name]++
			}
		}
	}
	for e := range n.Rec.Conns(n.Address, recording.KindClose) {
		if connection.IsRefusedDial(e.ConnDetail) && e.TimeNs >= w.FromNs && e.TimeNs <= w.ToNs {
			l.RefusedDials++
			l.Callers[hosts.ProcessName(n.Case, e.PID, e.Comm)]++
		}
	}
	return l
}
