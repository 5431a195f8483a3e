package cause

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// hiddenRetriesBackoff: one slow call of the application is several attempts. The library waits for a reply that never
// comes, gives up after its timeout, sleeps, and silently retries on another connection.
var hiddenRetriesBackoff = Cause{
	ID:      "hidden-retries-backoff",
	Class:   Redial,
	Options: []remedy.Topic{remedy.BoundRetries},
	// A request lost on a path that loses packets or drops connections is retried as well.
	After:   []string{"packet-loss-rto", "idle-conn-blackholed", "cmdinfo-once-lock", "process-frozen"},
	Explain: explainRetries,
}

// retries are the unanswered attempts of a caller, each with the next one.
type retries struct {
	*caller.Caller
	unanswered []*caller.Conn
	followed   []retry
	waitNs     int64
}

// retry is an unanswered attempt with the connection that came next.
type retry struct {
	from, to *caller.Conn
	pauseNs  int64 // from giving up to the next dial
}

// retriesOf pairs each unanswered attempt of a caller with the next connection that began with the same request: same
// command, same length.
func retriesOf(c *caller.Caller, unanswered map[*caller.Conn]bool) retries {
	a := retries{Caller: c}
	for _, k := range c.Conns {
		if unanswered[k] {
			a.unanswered = append(a.unanswered, k)
			a.waitNs += k.IdleNs
		}
	}
	slices.SortStableFunc(a.unanswered, func(x, y *caller.Conn) int { return cmp.Compare(x.CloseNs, y.CloseNs) })
	taken := map[*caller.Conn]bool{}
	for _, k := range a.unanswered {
		for _, next := range c.Conns { // in order of their start
			pause := next.OpenNs - next.DialNs - k.CloseNs
			if pause >= 0 && pause <= longestPause && !taken[next] && beganWith(next, k) {
				taken[next] = true
				a.followed = append(a.followed, retry{k, next, pause})
				break
			}
		}
	}
	if a.byChance() {
		a.followed = nil
	}
	return a
}

// byChance: connections opened for another reason would come as soon. So it is where another attempt goes to a
// connection of the pool.
func (a retries) byChance() bool {
	opened := a.Opened()
	if len(opened) < 2 {
		return false
	}
	// callers have them in order of their start
	gap := (opened[len(opened)-1].OpenNs - opened[0].OpenNs) / int64(len(opened)-1)
	return 2*a.pause().Median > gap
}

// pause is the time from giving up to the next dial.
func (a retries) pause() facts.Percentiles {
	var ns []int64
	for _, p := range a.followed {
		ns = append(ns, p.pauseNs)
	}
	return facts.PercentilesOfNs(ns)
}

// longestPause before another attempt: redis-py 6 and 7 limit theirs to 10 s, the longest default of the known
// libraries.
// Bound: library, redis-py 6 and 7.
const longestPause = int64(10e9)

// beganWith: the first command of a connection that does work is one that was unanswered on another.
func beganWith(c *caller.Conn, k *caller.Conn) bool {
	if k.UnansweredOp == "" {
		return false
	}
	if c.Handshake != nil && c.Handshake.Op != "" {
		return c.Handshake.Op == k.UnansweredOp && c.Handshake.Bytes == k.UnansweredBytes
	}
	return c.ClosedWaiting() && c.UnansweredOp == k.UnansweredOp && c.UnansweredBytes == k.UnansweredBytes
}

// longestChain is the longest chain of attempts.
func (a retries) longestChain() int {
	length, most := map[*caller.Conn]int{}, 1
	for _, p := range a.followed { // by the end of the first
		length[p.to] = 2
		if p.from.AppCalls() == 0 { // it was another attempt itself
			length[p.to] = max(length[p.from], 1) + 1
		}
		most = max(most, length[p.to])
	}
	return most
}

func explainRetries(n *facts.Node) *Finding {
	callers := caller.Callers(n)
	unanswered := connection.NeverAnswered(n, callers)
	for _, s := range connection.UnansweredRequests(n) {
		if s.Retransmits >= connection.UnansweredRetransmits { // the request itself was lost
			maps.DeleteFunc(unanswered, func(k *caller.Conn, _ bool) bool { return k.Client == s.Client })
		}
	}
	var worst retries
	var cost, paused int64
	var found []*caller.Caller
	for _, c := range callers {
		a := retriesOf(c, unanswered)
		if len(a.unanswered) < connection.MinRedials {
			continue
		}
		found = append(found, c)
		cost += a.waitNs
		for _, p := range a.followed {
			cost += p.to.OpeningNs()
			paused += p.pauseNs
		}
		if len(a.unanswered) > len(worst.unanswered) {
			worst = a
		}
	}
	if len(found) == 0 {
		return nil
	}
	l := connection.OverheadOf(n, callers)
	l.SpentNs += paused // on no connection
	f := findingOfLosses(l, n, cost+paused)
	if f == nil {
		return nil
	}
	age := f.supportRetries(n, worst)
	f.supportCallers(found)
	f.doubtRemote(worst.Caller)
	f.blameLoads(n, found...)
	f.FixSteps = retriesFix(n, age, found)
	return f
}

// supportRetries says how long the attempts of one caller waited, and what followed; it gives the timeout.
func (f *Finding) supportRetries(n *facts.Node, a retries) facts.Percentiles {
	age := caller.PercentilesOf(a.unanswered, func(k *caller.Conn) int64 { return k.IdleNs })
	f.support(recording.SourceTap, float64(len(a.unanswered)), "calls",
		"%s gave up %s after %s (%s to %s) and closed the connections; the server answered others meanwhile", a.Name,
		counted(len(a.unanswered), "call"), format.Brief(age.Median), format.Brief(age.P10), format.Brief(age.P90))
	late, _ := connection.AnsweredBeforeTimeout(n, age.Median)
	f.support(recording.SourceTap, late, "calls",
		"only %s took between %s and that: the replies given up on were not late, they never came",
		counted(late, "call"), format.Brief(age.Median/2))
	if known := remedy.Defaults(n); known != "" {
		f.support(recording.SourceServer, 0, "", "CLIENT LIST: %s", known)
	}
	if len(a.followed) == 0 {
		f.Title = "Replies never come, and the client waits a full timeout for each before it retries or gives up"
		f.doubt(recording.SourceTap, 0, "",
			"what followed was not seen: another attempt on an open connection, or an error for the caller")
		return age
	}
	pause := a.pause()
	f.support(recording.SourceTap, float64(len(a.followed)), "calls",
		"after %d of these a new connection of the same process began with the same "+
			"command of the same length, %s later (%s to %s)", len(a.followed), format.Brief(pause.Median),
		format.Brief(pause.P10),
		format.Brief(pause.P90))
	if most := a.longestChain(); most >= degree.Several {
		f.support(recording.SourceTap, float64(most), "attempts",
			"up to %d attempts in a row: at least %s in one call", most, format.Brief(int64(most-1)*age.Median))
	}
	f.doubt(recording.SourceTap, 0, "",
		"that the next one is a retry of the same call is inferred from its command and length: keys are not read")
	return age
}

func retriesFix(n *facts.Node, timeout facts.Percentiles, of []*caller.Caller) []remedy.Step {
	return append([]remedy.Step{
		inApplication("past-the-proxy", "Find out what loses the replies, a proxy, a balancer or a firewall on the "+
			"path, and let callers use the server's own address until it is repaired"),
	}, offered(n, remedy.BoundRetries, nil, fmt.Sprintf("Decide how long a whole call may take, and "+
		"make timeout x attempts + pauses fit: with %s and 3 retries it is at least %s", format.Brief(timeout.Median),
		format.Brief(4*timeout.Median)), of...)...)
}
