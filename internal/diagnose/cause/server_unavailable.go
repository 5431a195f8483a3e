package cause

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// serverUnavailable: for a while the server answered nobody, and attempts to reach it failed. What its caller's kernel
// was told says where to look.
var serverUnavailable = Cause{
	ID:      "server-unavailable",
	Changes: []string{"restart", "DEBUG", "package", "nftables rules", "route"},
	Explain: explainUnavailable,
}

func explainUnavailable(n *facts.Node) *Finding {
	if _, failedOver := nodes.TakeoverOf(n); failedOver {
		return nil // what callers lost has an end: another node takes its place, or should
	}
	outages := withoutRestarts(nodes.Outages(n), nodes.Restarts(n))
	if len(outages) == 0 || nodes.MaxclientsRefusals(n) > 0 {
		return nil
	}
	var gone facts.Spans
	for _, o := range outages {
		gone = append(gone, o.Span)
	}
	worst := slices.MaxFunc(outages, func(a, b nodes.Outage) int {
		return cmp.Compare(a.ToNs-a.FromNs, b.ToNs-b.FromNs)
	})
	gone = facts.MergeSpans(gone)
	cl := n.ClaimOf(gone.CallTimes)
	if worst.Kind == nodes.FailedNoReply && stoodStill(n, gone, cl) {
		return nil // it was alive: what it did, or what kept it from running, is known
	}
	f := finding(n, cl)
	f.loseWhile(n, gone)
	f.Title = unavailableTitle[worst.Kind]
	f.supportOutages(n, outages, worst)
	f.supportOwnFailures(n)
	f.supportLostCalls(n, facts.Span{FromNs: outages[0].FromNs, ToNs: outages[len(outages)-1].ToNs})
	f.supportProcessEnd(n)
	f.FixSteps = unavailableFix(n, worst)
	return f
}

// withoutRestarts are the outages that did not end with a restart of the server: those are known better.
func withoutRestarts(outages []nodes.Outage, restarts []nodes.Restart) []nodes.Outage {
	return slices.DeleteFunc(slices.Clone(outages), func(o nodes.Outage) bool {
		return slices.ContainsFunc(restarts, func(r nodes.Restart) bool {
			return r.FromNs < o.ToNs && r.ToNs > o.FromNs
		})
	})
}

var unavailableTitle = map[nodes.Failure]string{
	nodes.FailedRefused:     "The server was gone, and its port refused connections",
	nodes.FailedClosed:      "The server was gone, and connections to it were closed before any reply",
	nodes.FailedUnreachable: "The server was gone, and its address did not answer at all",
	nodes.FailedNoReply:     "The server stopped answering calls",
}

// stoodStill reports whether most of what calls waited during some spans is explained: by a state of the main thread,
// or by a command.
func stoodStill(n *facts.Node, gone facts.Spans, all facts.Claim) bool {
	open := n.ClaimOf(func(a account.Account) facts.StateTimes {
		return gone.TimesWithin(a, func(s account.Segment) bool {
			return facts.IsUnexplainedWait(s) || s.State == account.Dial
		})
	})
	return 2*open.Ns < all.Ns
}

func (f *Finding) supportOutages(n *facts.Node, outages []nodes.Outage, worst nodes.Outage) {
	what := map[nodes.Failure]string{
		nodes.FailedRefused:     "refused",
		nodes.FailedClosed:      "closed or reset before a reply",
		nodes.FailedUnreachable: "not answered",
		nodes.FailedNoReply:     "accepted and not answered",
	}[worst.Kind]
	end := "it had not answered again when the watch ended"
	if worst.Over {
		end = "then it answered again"
	}
	took := worst.ToNs - worst.FromNs
	f.support(recording.SourceProbe, float64(took), "ns", "its last answer came %s; for %s it answered nobody, and %s",
		sinceStart(n, worst.FromNs), format.Duration(took), end)
	if worst.Attempts > 0 {
		f.support(recording.SourceProbe, float64(worst.Attempts), "connections", "%s meanwhile: %s",
			counted(worst.Attempts, "new connection"), what)
	}
}

func unavailableFix(n *facts.Node, worst nodes.Outage) []remedy.Step {
	var fix []remedy.Step
	switch worst.Kind {
	case nodes.FailedRefused:
		if s, ok := startServer(n); ok {
			fix = append(fix, s)
		}
		fix = append(fix,
			onHost(n, "start-at-once",
				"Let it be started again whenever it ends: Restart=always (systemd), --restart=always (docker)"),
			onHost(n, "find-why-it-ended", "Find out why the process ended or stopped listening: its log, "+
				"journalctl%s, \"out of memory\" in dmesg; a firewall that rejects connections looks the same",
				remedy.WhatRunsIt(n)))
	case nodes.FailedClosed:
		fix = []remedy.Step{
			onHost(n, "live-server-behind-it", "Look at what listens there: a proxy or a load balancer without a live "+
				"server behind it closes connections at once"),
			onHost(n, "find-why-it-ended", "Find out why the server ended: its log, journalctl%s, \"out of memory\" "+
				"in dmesg", remedy.WhatRunsIt(n)),
		}
	case nodes.FailedUnreachable:
		fix = []remedy.Step{
			change("mend-the-path", "Check that the host is up, and the path to it: a firewall or a security group "+
				"that drops packets, a route, an address that has moved"),
		}
	default:
		fix = silentFix(n)
	}
	return append(fix, change("replica-that-may-take-over", "Give it a replica that takes over when it is gone "+
		"(Sentinel, cluster)"))
}

// silentFix is for a server that accepts connections and does not answer.
func silentFix(n *facts.Node) []remedy.Step {
	var fix []remedy.Step
	if s, ok := remedy.Continue(n); ok {
		fix = append(fix, s)
	}
	return append(fix, onHost(n, "find-what-stops-it", "Find what the process waits for: its state in /proc (T: "+
		"SIGSTOP, a debugger, a frozen container; D: a full or slow disk). slowpath as root on that host sees it"),
		inApplication(string(remedy.ReplyTimeout), "Give the clients a timeout for replies: without one a call to a "+
			"silent server waits for ever"))
}

// startServer starts a server again that its service manager runs; ok is false where none is known.
func startServer(n *facts.Node) (s remedy.Step, ok bool) {
	s = remedy.Step{
		ID: "start-server", Kind: remedy.Command, Text: "Start it again",
		Where: "the host of " + format.Name(n.Address),
	}
	switch c := hosts.CgroupOf(n); {
	case c.Pod != "":
	case c.Container != "" && strings.Contains(c.CPUPath, "docker"):
		name := format.Shell(fmt.Sprintf("%.12s", c.Container))
		s.Command, s.Undo = "docker start "+name, "docker stop "+name
	case strings.HasSuffix(c.Unit, ".service"):
		s.Command, s.Undo = "systemctl start "+format.Shell(c.Unit), "systemctl stop "+format.Shell(c.Unit)
	}
	return s, s.Command != ""
}
