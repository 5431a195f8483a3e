package cause

import (
	"fmt"
	"slices"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/recording"
)

// replicaRouting: callers ask a node that cannot serve them now: it loads its data, has lost its master, or is a
// replica that takes no writes. Each such call is refused, and waits in its library before it is tried again. Catalogue
// D8.
var replicaRouting = Cause{
	ID:    "replica-loading-or-readonly-routing",
	Title: "Calls go to a node that cannot serve them: it is loading, has lost its master, or takes no writes",
	Layer: "client",
	Needs: Needs{
		T0: "errorstat_LOADING, errorstat_MASTERDOWN, errorstat_READONLY (Redis 6.2 and later) beyond those of " +
			"slowpath's own calls; errorstat_CLUSTERDOWN of a node that loads, where no other has any; INFO loading, " +
			"master_link_status and role",
		T2: "the callers' own calls that were answered with an error while that was so, and whose they are; before " +
			"Redis 6.2 the only sign of them",
	},
	// A restart makes callers connect anew as well.
	After:   []string{"failover-window"},
	Explain: explainRouting,
}

// Why a node refuses calls.
const (
	codeLoading    = "LOADING"
	codeMasterDown = "MASTERDOWN"
	codeReadOnly   = "READONLY"
	// codeClusterDown is what a node of a cluster that loads its own file at its start gives to commands with keys,
	// before it comes to LOADING: its cluster state is fail until it runs its event loop and hears from the others
	// (getNodeByQuery before server.loading in processCommand; clusterInit).
	codeClusterDown = "CLUSTERDOWN"
)

// refused is what callers were refused by a node for one reason.
type refused struct {
	code    string
	calls   float64     // of users, by the server's count; where it has none, those that the kernel source kept
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
	if worst.code != codeReadOnly { // what it does meanwhile delays those whom it answers
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
	r.of = r.calls + float64(usersWellIn(n, r.when))
	return r
}

// downByLoading counts what users were refused with CLUSTERDOWN because this node loads. Where slots have no master the
// others refuse them as well: then it is the cluster that is down.
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

// risesOf are the rises of the server's count of an error, also of one that it began anew.
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

// ownRefused is how many of slowpath's own calls were refused, at most: of the probe's a fresh connection's handshake
// as well, and of the server source one in each round (CLUSTER INFO).
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

// usersWellIn counts the users' calls that were kept, and had no error, in some stretches.
func usersWellIn(n *facts.Node, when facts.Spans) (count int) {
	for _, c := range n.Rec.Calls {
		if c.Node == n.Address && c.Source == recording.SourceTap && c.Error == "" && when.OverlapNs(c.IntendedNs,
			c.EndNs) > 0 {
			count++
		}
	}
	return count
}

// whenRefusing is when the node was in the state in which it gives an error, as INFO told.
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

// probeRefused is when the probe's own calls were refused: from one to the next, as long as none came through between
// them.
func probeRefused(n *facts.Node, code string) (out facts.Spans) {
	last := int64(0) // end of the refused call before; 0: none since one that came through
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

// spansOf are the stretches from a point of a series that matches to the next one, or to the end of the watch; the
// points of a field that is only there while it is so hold for the next look, a second later.
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
		f.support(recording.SourceServer, fmt.Sprintf("it refused %.0f calls with %s and %.0f with %s while it "+
			"loaded, %.2g %% of those it was asked for (errorstat_%s, errorstat_%s; slowpath's own are not counted)",
			r.down, codeClusterDown, r.calls-r.down, r.code, 100*r.share(), codeClusterDown, r.code), r.calls, "calls")
		f.support(recording.SourceServer, "a node of a cluster that loads its own file at its start answers "+
			"CLUSTERDOWN to commands with keys; the other nodes gave it to nobody: the cluster was not down", 0, "")
		return
	}
	if r.counted {
		f.support(recording.SourceServer, fmt.Sprintf("it refused %.0f calls with %s, %.2g %% of those it was asked "+
			"for (errorstat_%s; slowpath's own are not counted)", r.calls, r.code, 100*r.share(), r.code), r.calls,
			"calls")
		return
	}
	f.Confidence = 0.75
	f.support(recording.SourceTap, fmt.Sprintf("%.0f calls of its clients had an error for a reply while it was so",
		r.calls), r.calls, "calls")
	f.doubt(recording.SourceServer, "this server does not count its errors by kind (Redis 6.2 and later do), so that "+
		"others may be among them", 0, "")
}

// supportState says what the node itself told of its state.
func (f *Finding) supportState(n *facts.Node, r refused) {
	ns := r.when.TotalNs()
	switch {
	case r.code == codeReadOnly && wasReplica(n):
		f.support(recording.SourceServer, "it is a replica (INFO role:slave), and takes no writes (replica-read-only)",
			0, "")
	case r.code == codeLoading && ns > 0:
		f.support(recording.SourceServer, fmt.Sprintf("it was loading its data for %s of the watch (INFO loading:1)",
			facts.Dur(ns)), float64(ns), "ns")
	case r.code == codeMasterDown && ns > 0:
		f.support(recording.SourceServer, fmt.Sprintf("its link to its master was down for %s and more of the watch "+
			"(INFO master_link_status)", facts.Dur(ns)), float64(ns), "ns")
	default:
		f.Confidence -= 0.1
		f.doubt(recording.SourceServer, "INFO was not seen to show that state, which then lasted less than a second "+
			"at a time", 0, "")
	}
	if restarts := len(n.Events(recording.SourceServer, recording.KindRestart)); restarts > 0 {
		f.support(recording.SourceServer, fmt.Sprintf("it was restarted %s in the watch", facts.TimesText(restarts)),
			float64(restarts), "restarts")
	}
}

// supportRefusedUsers says who asks it.
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
		f.support(recording.SourceTap, "who asks it: "+who.List(3), float64(len(who)), "callers")
	}
}

func routingFix(n *facts.Node, r refused) []string {
	switch r.code {
	case codeReadOnly:
		return append([]string{
			"Send writes to the master: its address is master_host and master_port in INFO replication of this node; " +
				"behind a name or a load balancer, see that it follows a failover",
		}, remedy.For(n, remedy.FollowMaster, nil)...)
	case codeMasterDown:
		return append([]string{
			"Mend the link to the master: INFO replication of both, client-output-buffer-limit replica and " +
				"repl-backlog-size if it breaks again and again",
			"CONFIG SET replica-serve-stale-data yes, if old data is better than none",
		}, routeByHealth(n)...)
	}
	fix := []string{"Let a node have its data before callers are sent to it: a readiness probe that asks INFO for " +
		"loading:0 and master_link_status:up, and not PING only"}
	if wasReplica(n) {
		fix = append(fix, "Avoid full resyncs: repl-backlog-size some 100 MB (1 MB by default), "+
			"client-output-buffer-limit replica larger than the data; a replica with its own RDB or AOF needs only "+
			"what it missed",
			"CONFIG SET repl-diskless-load swapdb (Redis 6.0 and later) with replica-lazy-flush yes: from 7.0 on the "+
				"replica answers from its old data until the new is loaded, with memory for both")
	}
	return append(fix, routeByHealth(n)...)
}

func routeByHealth(n *facts.Node) []string {
	return remedy.For(n, remedy.AvoidUnreadyNode, nil)
}
