package cause

import (
	"fmt"
	"strings"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
	"slowpath/internal/wire/cluster"
)

// callsRefused: the server answers with an error that says that it, or its configuration, does not serve such calls
// now. A call that fails is the slowest of all.
var callsRefused = Cause{
	ID:  "calls-refused",
	See: append(refusalPages(), errorsPage),
	Changes: []string{
		"maxmemory*", "min-replicas-*", "stop-writes-on-bgsave-error", "ACL *", "REPLICAOF", "SLAVEOF", "role",
	},
	// It starts with its data on disk.
	After:   []string{"server-restarted", "failover-window", "lua-or-multi-long"},
	Explain: explainRefused,
}

func explainRefused(n *facts.Node) *Finding {
	if _, failedOver := nodes.TakeoverOf(n); failedOver {
		return nil
	}
	if f := explainClusterDown(n); f != nil {
		return f
	}
	var worst *refusedFor
	for _, r := range nodes.RefusedCallsOf(n) {
		if one := judgeRefusal(n, r); one != nil && (worst == nil || one.share > worst.share) {
			worst = one
		}
	}
	if worst == nil {
		return nil
	}
	f := &Finding{Of: n.Ledger.Calls(), Grade: Counted, Samples: worst.Own}
	f.supportRefusals(n, *worst)
	if worst.users {
		f.Samples = int(worst.Users)
		f.loseRefused(n, worst.Users)
		f.supportRefusedUsers(n)
	} else {
		f.loseBeside(n, facts.LostWaiting, worst.share, facts.HealthyMaxNs)
		f.doubt(recording.SourceServer, 0, "", "no calls of clients were seen to get it: there may be none now")
	}
	f.sayRefused(n, worst.Code, worst.why)
	return f
}

// sayRefused says what is the same for all calls that were refused with one error.
func (f *Finding) sayRefused(n *facts.Node, code string, why refusal) {
	f.Title = fmt.Sprintf("Calls are refused: %s (%s)", why.title, code)
	if why.title == "" {
		f.Title = fmt.Sprintf("Most calls get an error reply: %s", code)
	}
	f.supportRefusedCommands(n, code)
	if code == clusterDownCode {
		f.supportClusterState(n)
	}
	f.FixSteps, f.See = why.fix(n), []string{why.see}
}

// refusedFor is what a node refused with one error, and why that is no part of a healthy application.
type refusedFor struct {
	nodes.RefusedCalls
	why   refusal
	users bool // it is a pattern of the clients' calls; else of slowpath's own
	share float64
}

// judgeRefusal decides whether error replies are a finding; nil for no.
//
// An error that says that the server does not serve the call (a row of refusals) depends on no data: no application is
// built on it, and a few are a pattern. That of a user without a right counts from the same share on as slow calls do:
// monitoring tries what it may not. All other errors are answers to what was asked (WRONGTYPE, NOSCRIPT, BUSYGROUP, an
// error of the application's own script): applications live with them, and only where more than half of all calls get
// one, they do not.
func judgeRefusal(n *facts.Node, r nodes.RefusedCalls) *refusedFor {
	why, known := refusalOf(r.Code)
	switch {
	case why.elsewhere, r.Code == clusterDownCode && explainedElsewhere(n):
		return nil
	case !known:
		r.Users = min(r.Users, otherErrors(n, r))
		if r.UsersShare() <= degree.Most || r.Users < facts.HealthyMinCalls || answeredInStead(n, r.Code) {
			return nil
		}
		return &refusedFor{r, refusal{fix: otherErrorsFix, see: errorsPage}, true, r.UsersShare()}
	}
	if why.login {
		r.Users = min(r.Users, refusedData(n, r))
	}
	usersHave := r.Users >= facts.HealthyMinCalls && (!why.login || r.UsersShare() > facts.HealthyMaxShare)
	// Slowpath's own user may lack what others have, unless it had it before.
	ownHave := r.Own >= facts.HealthyMinCalls && r.OwnShare() > facts.HealthyMaxShare && (!why.login || r.OwnBefore)
	switch {
	case why.users && (usersHave || refusedWhileLoading(n)):
		return nil // another cause has what clients were refused
	case usersHave:
		return &refusedFor{r, why, true, r.UsersShare()}
	case ownHave:
		return &refusedFor{r, why, false, r.OwnShare()}
	}
	return nil
}

// refusedData is how many calls of clients for data were refused, at most. Libraries and monitoring try commands about
// the server and the connection, CONFIG GET or CLIENT SETINFO, and go on without them.
func refusedData(n *facts.Node, r nodes.RefusedCalls) (calls float64) {
	if r.Counted {
		return float64(nodes.RefusedCommands(n).Total())
	}
	for op, count := range nodes.TapErrors(n)[r.Code] {
		if facts.IsDataCommand(strings.ToLower(strings.ReplaceAll(op, " ", "|"))) {
			calls += float64(count)
		}
	}
	return calls
}

// otherErrors is how many calls of clients for data failed with an error that is no refusal, at most.
func otherErrors(n *facts.Node, r nodes.RefusedCalls) float64 {
	if !r.Counted {
		return refusedData(n, r)
	}
	failed := float64(nodes.FailedCommands(n).Total())
	for _, one := range nodes.RefusedCallsOf(n) {
		if _, known := refusalOf(one.Code); known {
			failed -= one.Users
		}
	}
	return failed
}

// explainedElsewhere reports whether CLUSTERDOWN is a part of something else: a master is gone and its replica takes
// over, or a replica loads its data at its start, before it has heard from the other nodes.
func explainedElsewhere(n *facts.Node) bool {
	for _, one := range n.Nodes {
		_, failedOver := nodes.TakeoverOf(one)
		_, _, gone := nodes.TakeoverOfUnwatchedMaster(one)
		if failedOver || gone {
			return true
		}
	}
	return nodes.WasReplica(n) && nodes.RefusingSpans(n, "LOADING").TotalNs() > 0
}

// explainClusterDown is for a node that says itself that its cluster is down, whether or not anybody calls it: it then
// refuses all commands with keys (cluster.c, getNodeByQuery).
func explainClusterDown(n *facts.Node) *Finding {
	down := nodes.ClusterDownNs(n)
	if down < clusterStartNs || explainedElsewhere(n) {
		return nil
	}
	why, _ := refusalOf(clusterDownCode)
	share := min(1, float64(down)/float64(n.EndNs-n.StartNs))
	f := &Finding{Of: n.Ledger.Calls(), Grade: Counted}
	f.loseBeside(n, facts.LostWaiting, share, facts.HealthyMaxNs)
	f.support(recording.SourceServer, float64(down), "ns",
		"it said cluster_state:fail for %s, until the end of the watch: it refuses all commands with keys",
		format.Duration(down))
	for _, r := range nodes.RefusedCallsOf(n) {
		if r.Code == clusterDownCode {
			f.supportRefusals(n, refusedFor{RefusedCalls: r})
		}
	}
	f.sayRefused(n, clusterDownCode, why)
	return f
}

// clusterStartNs is for how long a node that starts says that its cluster is down, though it is not
// (CLUSTER_WRITABLE_DELAY, 2 s), and the server source's interval.
// Bound: server, CLUSTER_WRITABLE_DELAY of cluster_legacy.c, 2 s, and PollIntervalNs.
const clusterStartNs = int64(3e9)

// refusedWhileLoading reports whether clients got CLUSTERDOWN while the node loaded its data at its start, before it
// had heard from the other nodes: commands with keys get that in place of LOADING.
func refusedWhileLoading(n *facts.Node) bool {
	loading := nodes.RefusingSpans(n, "LOADING")
	calls := -nodes.OwnErrorReplies(n, clusterDownCode)
	for _, step := range nodes.ErrorRises(n, clusterDownCode) {
		if loading.OverlapNs(step.FromNs, step.ToNs) > 0 {
			calls += step.Delta
		}
	}
	return calls >= facts.HealthyMinCalls
}

// answeredInStead reports whether clients sent the script itself after a server did not know it by its hash: EVALSHA,
// NOSCRIPT, EVAL is how libraries call scripts.
func answeredInStead(n *facts.Node, code string) bool {
	if code != "NOSCRIPT" {
		return false
	}
	sent := 0.0
	for _, name := range []string{"eval", "eval_ro", "script", "script|load"} {
		sent += n.Growth(series.CommandCalls(name))
	}
	missing, _ := nodes.ErrorCount(n, code)
	return 2*sent >= missing
}

const errorsPage = "https://redis.io/docs/latest/develop/reference/protocol-spec/#simple-errors"

// otherErrorsFix is for errors that are answers to what was asked.
func otherErrorsFix(*facts.Node) []remedy.Step {
	return []remedy.Step{inApplication("log-error-replies",
		"Log the error replies in the application: their text says which command fails and why")}
}

func (f *Finding) supportRefusals(n *facts.Node, r refusedFor) {
	if r.Users > 0 {
		source, how := refusedSource(r.RefusedCalls)
		f.support(source, r.Users, "calls", "%s of %.0f of its clients got %s, %s (%s)",
			counted(r.Users, "call"), max(r.UsersOf, r.Users), r.Code, format.Percent(r.UsersShare()), how)
	}
	if r.Own > 0 {
		f.support(recording.SourceProbe, float64(r.Own), "calls", "%d of %d of slowpath's own calls got %s", r.Own,
			r.OwnOf, r.Code)
	}
	if r.FromNs > 0 {
		f.support(recording.SourceServer, float64(max(r.FromNs-n.StartNs, 0)), "ns", "the first was seen %s",
			sinceStart(n, r.FromNs))
	}
}

// supportRefusedCommands names the commands that were refused.
func (f *Finding) supportRefusedCommands(n *facts.Node, code string) {
	if ops := nodes.TapErrors(n)[code]; len(ops) > 0 {
		f.support(recording.SourceTap, float64(ops.Total()), "calls", "it answered clients with %s to: %s", code,
			countsText(ops))
		return
	}
	if ops := nodes.RefusedCommands(n); len(ops) > 0 {
		f.support(recording.SourceServer, float64(ops.Total()), "calls",
			"commands that it refused, for whatever reason: %s (rejected_calls)", countsText(ops))
	}
}

// countsText lists the most frequent names with their counts.
func countsText(counts facts.NameCounts) string {
	var out []string
	for _, name := range counts.Top(degree.Listed) {
		out = append(out, fmt.Sprintf("%s %d", name, counts[name]))
	}
	if more := len(counts) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(out, ", ")
}

// supportClusterState says what the node reports of its cluster, where that is down.
func (f *Finding) supportClusterState(n *facts.Node) {
	if missing := nodes.UnassignedSlots(n); missing > 0 {
		f.support(recording.SourceServer, float64(missing), "slots", "%d of %d slots have no node (CLUSTER INFO)",
			missing, cluster.SlotCount)
	}
	for _, field := range []series.Name{series.ClusterSlotsPfail, series.ClusterSlotsFail} {
		if slots, _ := n.Series(field).Max(); slots > 0 {
			f.support(recording.SourceServer, slots, "slots", "%.0f slots belong to nodes that do not answer (%s)",
				slots, field.Name)
		}
	}
	if silent := nodes.SilentMasters(n); len(silent) > 0 {
		f.support(recording.SourceServer, float64(len(silent)), "nodes",
			"its cluster map has %s with slots as failed: %s (CLUSTER NODES)", counted(len(silent), "master"),
			strings.Join(silent[:min(len(silent), degree.Listed)], ", "))
	}
}

const clusterDownCode = "CLUSTERDOWN"
