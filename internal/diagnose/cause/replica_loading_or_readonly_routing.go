package cause

import (
	"slices"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// replicaRouting: callers ask a node that cannot serve them now: it loads its data, has lost its master, or is a
// replica that takes no writes. Each such call is refused, and waits in its library before it is retried.
var replicaRouting = Cause{
	ID:      "replica-loading-or-readonly-routing",
	Options: []remedy.Topic{remedy.FollowMaster, remedy.AvoidUnreadyNode},
	Changes: []string{"role", "restart", "REPLICAOF", "SLAVEOF"},
	After:   []string{"failover-window", "server-restarted"},
	Explain: explainRouting,
}

// Why a node refuses calls.
const (
	codeLoading    = "LOADING"
	codeMasterDown = "MASTERDOWN"
	codeReadOnly   = "READONLY"
	// codeClusterDown is what a cluster node that loads its own file at its start answers to commands with keys, before
	// it checks for LOADING: its cluster state is fail until it runs its event loop and hears from the other nodes
	// (getNodeByQuery before server.loading in processCommand; clusterInit).
	codeClusterDown = "CLUSTERDOWN"
)

// refused is what a node refused to callers for one reason.
type refused struct {
	code    string
	calls   float64     // of users, by the server's count; where it has none, those that the tap kept
	down    float64     // of them with CLUSTERDOWN, because it loads
	counted bool        // by the server
	of      float64     // all of the users' calls at this node, served or not
	when    facts.Spans // it was in that state
}

func (r refused) share() float64 { return r.calls / max(r.of, r.calls, 1) }

func explainRouting(n *facts.Node) *Finding {
	var worst refused
	for _, code := range []string{codeLoading, codeMasterDown, codeReadOnly} {
		if r := turnedDown(n, code); r.calls > worst.calls {
			worst = r
		}
	}
	if worst.calls < facts.HealthyMinCalls || worst.share() <= facts.HealthyMaxShare {
		return nil
	}
	if worst.code == codeLoading && reloaded(n, worst.when) {
		return nil // no start of the server: the command that it waits for is the reason
	}
	var cl facts.Claim
	if worst.code != codeReadOnly { // its work meanwhile delays the calls that it answers
		cl = n.ClaimOf(worst.when.CallTimes)
	}
	f := finding(n, cl)
	f.loseBeside(n, facts.LostWaiting, worst.share(), facts.HealthyMaxNs)
	f.supportRefused(n, worst)
	f.supportState(n, worst)
	f.supportRefusedUsers(n)
	f.Title, f.FixSteps = routingTitle[worst.code], routingFix(n, worst)
	if nodes.WasReplica(n) { // callers of a replica can ask another node while it starts
		f.IndependentOf = []string{"server-restarted"}
	}
	if worst.down > 0 {
		f.Title = "Calls go to a node that is loading its data, and are refused (CLUSTERDOWN, LOADING)"
	}
	return f
}

// reloaded reports whether a command had the server load its data meanwhile.
func reloaded(n *facts.Node, when facts.Spans) bool {
	return slices.ContainsFunc(n.Ledger.Suspects, func(s account.Suspect) bool {
		return s.Node == n.Address && (s.Command == "DEBUG RELOAD" || s.Command == "DEBUG LOADAOF") &&
			when.OverlapNs(s.FromNs, s.ToNs) > 0
	})
}

var routingTitle = map[string]string{
	codeLoading:    "Calls go to a node that is loading its data, and are refused (LOADING)",
	codeMasterDown: "Reads go to a replica that has lost its master, and are refused (MASTERDOWN)",
	codeReadOnly:   "Writes go to a replica, and are refused (READONLY)",
}

// turnedDown counts what users were refused for a reason: the server's count of such errors without those of slowpath's
// own calls.
func turnedDown(n *facts.Node, code string) refused {
	r := refused{code: code, when: whenRefusing(n, code)}
	served := max(n.Growth(series.TotalCommandsProcessed)-connection.OwnCommandsPerSecond(n)*n.Seconds(), 0)
	if r.calls, r.counted = nodes.ErrorCount(n, code); r.counted {
		r.calls = max(r.calls-nodes.OwnErrorReplies(n, code), 0)
		if code == codeLoading {
			r.down = downByLoading(n, r.when)
			r.calls += r.down
		}
		r.of = served + r.calls
		return r
	}
	for _, c := range n.Rec.Calls {
		if c.Node != n.Address || c.Source != recording.SourceTap || r.when.OverlapNs(c.IntendedNs, c.EndNs) == 0 {
			continue
		}
		if r.of++; c.Error != "" {
			r.calls++
		}
	}
	return r
}

// downByLoading counts what users were refused with CLUSTERDOWN because this node loads. Where slots have no master the
// other nodes refuse calls as well: then the cluster is down.
func downByLoading(n *facts.Node, loading facts.Spans) float64 {
	if loading.TotalNs() == 0 {
		return 0
	}
	for _, other := range n.Nodes {
		if calls, _ := nodes.ErrorCount(other, codeClusterDown); other != n && calls > 0 {
			return 0
		}
	}
	calls := 0.0
	for _, step := range nodes.ErrorRises(n, codeClusterDown) {
		if loading.OverlapNs(step.FromNs, step.ToNs) > 0 {
			calls += step.Delta
		}
	}
	return max(calls-nodes.OwnErrorReplies(n, codeClusterDown), 0)
}

// whenRefusing is when the node was in the state in which it gives an error.
func whenRefusing(n *facts.Node, code string) facts.Spans {
	switch {
	case code != codeReadOnly:
		return nodes.RefusingSpans(n, code)
	case nodes.WasReplica(n):
		return facts.Spans{{FromNs: n.StartNs, ToNs: n.EndNs}}
	}
	return nil
}

func (f *Finding) supportRefused(n *facts.Node, r refused) {
	if r.down > 0 {
		f.support(recording.SourceServer, r.calls, "calls", "it refused %.0f calls with %s and %.0f with %s while it "+
			"loaded, %s of those it received (errorstat_%s, errorstat_%s; slowpath's own are not counted)", r.down,
			codeClusterDown, r.calls-r.down, r.code, format.Percent(r.share()), codeClusterDown, r.code)
		f.support(recording.SourceServer, 0, "", "a cluster node that loads its own file at its start answers "+
			"CLUSTERDOWN to commands with keys; no other node sent it: the cluster was not down")
		return
	}
	if r.counted {
		f.support(recording.SourceServer, r.calls, "calls", "it refused %.0f calls with %s, %s of those it received "+
			"(errorstat_%s; slowpath's own are not counted)", r.calls, r.code, format.Percent(r.share()), r.code)
		return
	}
	f.support(recording.SourceTap, r.calls, "calls",
		"%s of its clients got an error meanwhile", counted(r.calls, "call"))
	f.doubt(recording.SourceServer, 0, "",
		"this server does not count errors by type (Redis 6.2 and later do): others may be among them")
}

// supportState says what the node itself reported of its state.
func (f *Finding) supportState(n *facts.Node, r refused) {
	ns := r.when.TotalNs()
	switch {
	case r.code == codeReadOnly && nodes.WasReplica(n):
		f.support(recording.SourceServer, 0, "",
			"it is a replica (INFO role:slave), and takes no writes (replica-read-only)")
	case r.code == codeLoading && ns > 0:
		f.support(recording.SourceServer, float64(ns), "ns",
			"it was loading its data for %s of the watch (INFO loading:1)", format.Brief(ns))
	case r.code == codeMasterDown && ns > 0:
		f.support(recording.SourceServer, float64(ns), "ns",
			"its link to its master was down for at least %s of the watch (INFO master_link_status)", format.Brief(ns))
	default:
		f.doubt(recording.SourceServer, 0, "",
			"INFO never showed that state, so it lasted less than a second at a time")
	}
	if restarts := len(n.Events(recording.SourceServer, recording.KindRestart)); restarts > 0 {
		f.support(recording.SourceServer, float64(restarts), "restarts",
			"it was restarted %s during the watch", facts.TimesText(restarts))
	}
}

func routingFix(n *facts.Node, r refused) []remedy.Step {
	unready := remedy.Steps(n, remedy.AvoidUnreadyNode, nil)
	switch r.code {
	case codeReadOnly:
		return append([]remedy.Step{remedy.WriteToMaster(n)}, remedy.Steps(n, remedy.FollowMaster, nil)...)
	case codeMasterDown:
		return append([]remedy.Step{remedy.ServeStaleData(n), remedy.MendMasterLink}, unready...)
	}
	fix := append(unready, remedy.ReadinessProbe)
	if nodes.WasReplica(n) && facts.ServerAtLeast(n, 7, 0) {
		fix = append(fix, replicaKeepsServing(n))
	}
	return fix
}

// replicaKeepsServing is what lets a replica answer while it gets its data again.
func replicaKeepsServing(n *facts.Node) remedy.Step {
	s := remedy.ConfigSet(n, "load-beside", "repl-diskless-load", "swapdb",
		"Let the replica answer from its old data until a full resync is complete, with replica-lazy-flush yes")
	s.Since, s.Risk = "Redis 7.0", "it needs memory for both; "+s.Risk
	return s
}
