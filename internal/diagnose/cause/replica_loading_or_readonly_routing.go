package cause

import (
	"slices"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// replicaRouting: callers ask a node that cannot serve them now: it loads its data, has lost its master, or is a
// replica that takes no writes. Each such call is refused, and waits in its library before it is retried.
var replicaRouting = Cause{
	ID:    "replica-loading-or-readonly-routing",
	Title: "Calls go to a node that cannot serve them: it is loading, has lost its master, or takes no writes",
	Layer: "client",
	Needs: Needs{
		T0: "errorstat_LOADING, errorstat_MASTERDOWN, errorstat_READONLY (Redis 6.2 and later) beyond those " +
			"of slowpath's own calls; errorstat_CLUSTERDOWN of a loading node, when no other node has " +
			"any; INFO loading, master_link_status and role",
		T2: "the callers' own calls that got an error meanwhile, and which " +
			"callers; before Redis 6.2 the only sign of them",
	},
	// A restart makes callers reconnect as well.
	After:   []string{"failover-window"},
	Loses:   facts.LostWaiting,
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
	var cl facts.Claim
	if worst.code != codeReadOnly { // its work meanwhile delays the calls that it answers
		cl = n.ClaimOf(func(a account.Account) int64 { return worst.when.OverlapNs(a.Call.IntendedNs, a.Call.EndNs) })
	}
	f := finding(n, cl, 0.93)
	f.ExcessShare = max(f.ExcessShare, worst.share())
	f.supportRefused(n, worst)
	f.supportState(n, worst)
	f.supportRefusedUsers(n, worst)
	f.Title, f.Fix = routingTitle[worst.code], routingFix(n, worst)
	if worst.down > 0 {
		f.Title = "Calls go to a node that is loading its data, and are refused (CLUSTERDOWN, LOADING)"
	}
	f.See = []string{
		"https://redis.io/docs/latest/operate/oss_and_stack/management/replication/#read-only-replica",
		"https://github.com/redis/redis/pull/13495",
	}
	return f
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
	served := max(n.Info("total_commands_processed").Growth()-n.OwnCommandsPerSecond()*n.Seconds(), 0)
	if r.calls, r.counted = n.ErrorCount(code); r.counted {
		r.calls = max(r.calls-ownRefused(n, code), 0)
		if code == codeLoading {
			r.down = downByLoading(n, r.when)
			r.calls += r.down
		}
		r.of = served + r.calls
		return r
	}
	for _, c := range n.Rec.Calls {
		if c.Node == n.Address && c.Source == recording.SourceTap && c.Error != "" && r.when.OverlapNs(c.IntendedNs,
			c.EndNs) > 0 {
			r.calls++
		}
	}
	r.of = r.calls + float64(usersServedIn(n, r.when))
	return r
}

// downByLoading counts what users were refused with CLUSTERDOWN because this node loads. Where slots have no master the
// other nodes refuse calls as well: then the cluster is down.
func downByLoading(n *facts.Node, loading facts.Spans) float64 {
	if loading.TotalNs() == 0 {
		return 0
	}
	for _, other := range n.Nodes {
		if calls, _ := other.ErrorCount(codeClusterDown); other != n && calls > 0 {
			return 0
		}
	}
	calls := 0.0
	for _, step := range risesOf(n, codeClusterDown) {
		if loading.OverlapNs(step.FromNs, step.ToNs) > 0 {
			calls += step.Delta
		}
	}
	return max(calls-ownRefused(n, codeClusterDown), 0)
}

// risesOf are the rises of the server's count of an error, including one that restarted from zero.
func risesOf(n *facts.Node, code string) (out []recording.Step) {
	s := n.Info("errorstat_" + code + ".count")
	for i, p := range s[min(1, len(s)):] {
		before := s[i]
		d := p.Value - before.Value
		if d < 0 {
			d = p.Value // since its start
		}
		out = append(out, recording.Step{FromNs: before.TimeNs, ToNs: p.TimeNs, Delta: d})
	}
	return out
}

// ownRefused is how many of slowpath's own calls were refused, at most: for the probe also a fresh connection's
// handshake, and for the server source one in each poll (CLUSTER INFO).
func ownRefused(n *facts.Node, code string) (own float64) {
	for _, c := range n.Rec.Calls {
		switch {
		case c.Node != n.Address || c.Source != recording.SourceProbe || c.Error != code:
		case c.Conn == "fresh":
			own += facts.CommandsPerFresh
		default:
			own++
		}
	}
	if own > 0 {
		own += float64(len(n.Events(recording.SourceServer, recording.KindPoll)))
	}
	return own
}

// usersServedIn counts the users' recorded calls without an error during some spans.
func usersServedIn(n *facts.Node, when facts.Spans) (count int) {
	for _, c := range n.Rec.Calls {
		if c.Node == n.Address && c.Source == recording.SourceTap && c.Error == "" && when.OverlapNs(c.IntendedNs,
			c.EndNs) > 0 {
			count++
		}
	}
	return count
}

// whenRefusing is when the node was in the state in which it gives an error, according to INFO.
func whenRefusing(n *facts.Node, code string) facts.Spans {
	switch code {
	case codeLoading:
		return facts.MergeSpans(append(probeRefused(n, code), spansOf(n, n.Info("loading"),
			func(v float64) bool { return v > 0 },
			false)...))
	case codeMasterDown:
		return facts.MergeSpans(append(probeRefused(n, code), spansOf(n, n.Info("master_link_down_since_seconds"),
			func(float64) bool { return true }, true)...))
	}
	if wasReplica(n) {
		return facts.Spans{{FromNs: n.StartNs, ToNs: n.EndNs}}
	}
	return nil
}

// probeRefused is when the probe's own calls were refused: from one to the next, while none succeeded between them.
func probeRefused(n *facts.Node, code string) (out facts.Spans) {
	last := int64(0) // end of the refused call before; 0: none since the last success
	for _, c := range n.Rec.Calls {
		if c.Node != n.Address || c.Source != recording.SourceProbe {
			continue
		}
		if c.Error != code {
			if c.Error == "" {
				last = 0
			}
			continue
		}
		from := c.StartNs
		if last > 0 && last < from {
			from = last
		}
		out, last = append(out, facts.Span{FromNs: from, ToNs: c.EndNs}), c.EndNs
	}
	return facts.MergeSpans(out)
}

// spansOf are the spans from a matching point of a series to the next point, or to the end of the watch. The points of
// a field that exists only in that state hold until the next poll, a second later.
func spansOf(n *facts.Node, s recording.Series, match func(float64) bool, vanishes bool) (out facts.Spans) {
	for i, p := range s {
		if !match(p.Value) {
			continue
		}
		to := n.EndNs
		if i+1 < len(s) {
			to = s[i+1].TimeNs
		}
		if vanishes {
			to = min(to, p.TimeNs+int64(facts.PollIntervalNs))
		}
		out = append(out, facts.Span{FromNs: p.TimeNs, ToNs: to})
	}
	return facts.MergeSpans(out)
}

// wasReplica reports whether the node said that it is a replica, at any time.
func wasReplica(n *facts.Node) bool {
	return slices.ContainsFunc(n.InfoTexts, func(t facts.InfoText) bool { return t.Role == "slave" })
}

func (f *Finding) supportRefused(n *facts.Node, r refused) {
	if r.down > 0 {
		f.support(recording.SourceServer, r.calls, "calls",
			"it refused %.0f calls with %s and %.0f with %s while it loaded, %.2g %% of those it received "+
				"(errorstat_%s, errorstat_%s; slowpath's own are not counted)", r.down, codeClusterDown, r.calls-r.down,
			r.code, 100*r.share(), codeClusterDown, r.code)
		f.support(recording.SourceServer, 0, "",
			"a cluster node that loads its own file at its start answers CLUSTERDOWN to commands with keys; no "+
				"other node sent it: the cluster was not down")
		return
	}
	if r.counted {
		f.support(recording.SourceServer, r.calls, "calls",
			"it refused %.0f calls with %s, %.2g %% of those it received "+
				"(errorstat_%s; slowpath's own are not counted)", r.calls, r.code, 100*r.share(), r.code)
		return
	}
	f.Confidence = 0.75
	f.support(recording.SourceTap, r.calls, "calls",
		"%s of its clients got an error meanwhile", counted(r.calls, "call"))
	f.doubt(recording.SourceServer, 0, "",
		"this server does not count errors by type (Redis 6.2 and later do): others may be among them")
}

// supportState says what the node itself reported of its state.
func (f *Finding) supportState(n *facts.Node, r refused) {
	ns := r.when.TotalNs()
	switch {
	case r.code == codeReadOnly && wasReplica(n):
		f.support(recording.SourceServer, 0, "",
			"it is a replica (INFO role:slave), and takes no writes (replica-read-only)")
	case r.code == codeLoading && ns > 0:
		f.support(recording.SourceServer, float64(ns), "ns",
			"it was loading its data for %s of the watch (INFO loading:1)", format.Brief(ns))
	case r.code == codeMasterDown && ns > 0:
		f.support(recording.SourceServer, float64(ns), "ns",
			"its link to its master was down for at least %s of the watch (INFO master_link_status)", format.Brief(ns))
	default:
		f.Confidence -= 0.1
		f.doubt(recording.SourceServer, 0, "",
			"INFO never showed that state, so it lasted less than a second at a time")
	}
	if restarts := len(n.Events(recording.SourceServer, recording.KindRestart)); restarts > 0 {
		f.support(recording.SourceServer, float64(restarts), "restarts",
			"it was restarted %s during the watch", facts.TimesText(restarts))
	}
}

// supportRefusedUsers names its callers.
func (f *Finding) supportRefusedUsers(n *facts.Node, r refused) {
	who := facts.NameCounts{}
	for _, c := range n.Rec.Calls {
		if c.Node == n.Address && c.Source == recording.SourceTap && c.Error != "" && c.Client != "" {
			who[c.Client]++
		}
	}
	if len(who) == 0 {
		for _, c := range n.ClientCallers() {
			if c.AppCalls() > 0 {
				who[c.Name] += int(c.AppCalls())
			}
		}
	}
	if len(who) > 0 {
		f.support(recording.SourceTap, float64(len(who)), "callers", "its callers: %s", who.List(3))
	}
}

func routingFix(n *facts.Node, r refused) []string {
	switch r.code {
	case codeReadOnly:
		return append([]string{
			"Send writes to the master: its address is master_host and master_port in INFO replication of this " +
				"node; behind a name or a load balancer, check that it follows a failover",
		}, remedy.For(n, remedy.FollowMaster, nil)...)
	case codeMasterDown:
		return append([]string{
			"Fix the link to the master: INFO replication of both; client-output-buffer-limit replica " +
				"and repl-backlog-size if it breaks repeatedly",
			"CONFIG SET replica-serve-stale-data yes, if stale data is better than none",
		}, routeByHealth(n)...)
	}
	fix := []string{"Send callers to a node only when it has its data: a readiness probe that checks INFO for " +
		"loading:0 and master_link_status:up, not PING alone"}
	if wasReplica(n) {
		fix = append(fix,
			"Avoid full resyncs: repl-backlog-size some 100 MB (1 MB by default), client-output-buffer-limit "+
				"replica larger than the data; a replica with its own RDB or AOF needs only what it missed",
			"CONFIG SET repl-diskless-load swapdb (Redis 6.0 and later) with replica-lazy-flush yes: from 7.0 the "+
				"replica answers from its old data until the new is loaded, with memory for both")
	}
	return append(fix, routeByHealth(n)...)
}

func routeByHealth(n *facts.Node) []string {
	return remedy.For(n, remedy.AvoidUnreadyNode, nil)
}
