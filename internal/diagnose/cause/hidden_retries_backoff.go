package cause

import (
	"fmt"
	"slices"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/recording"
)

// hiddenRetriesBackoff: what the application sees as one slow call are several: the library waits for a reply that
// never comes, gives up after its timeout, sleeps, and tries again on another connection, without a word. Catalogue
// A10.
var hiddenRetriesBackoff = Cause{
	ID: "hidden-retries-backoff",
	Title: "The client tries again by itself: one call of the application is several, each with a whole timeout and " +
		"a pause in between",
	Layer: "client",
	Needs: Needs{
		T0: "nothing: the server answers each attempt at once",
		T2: "connections that the client closes with a call waiting, while the server answers others at once, and " +
			"hardly any call is answered shortly before that age; the same command follows on the next connection",
	},
	// A request that never arrives, on a path that loses packets or forgets connections, is tried again as well.
	After:   []string{"packet-loss-rto", "idle-conn-blackholed", "cmdinfo-once-lock", "process-frozen"},
	Explain: explainRetries,
}

// attempts are the attempts of a caller that had no reply, each with the next one.
type attempts struct {
	*facts.Caller
	vain   []*facts.Conn
	again  []again
	waitNs int64
}

// again is an attempt without a reply with the connection that came next.
type again struct {
	from, to *facts.Conn
	pauseNs  int64 // from giving up to the next dial
}

// attemptsOf pairs each attempt of a caller that had no reply with the next connection that began with the same
// request: same command, same length.
func attemptsOf(c *facts.Caller, vain map[*facts.Conn]bool) attempts {
	a := attempts{Caller: c}
	for _, k := range c.Conns {
		if vain[k] {
			a.vain = append(a.vain, k)
			a.waitNs += k.IdleNs
		}
	}
	slices.SortStableFunc(a.vain, func(x, y *facts.Conn) int { return int(max(-1, min(1, x.CloseNs-y.CloseNs))) })
	taken := map[*facts.Conn]bool{}
	for _, k := range a.vain {
		for _, next := range c.Conns { // in order of their begin
			if from := next.OpenNs - next.DialNs; from < k.CloseNs || from > k.CloseNs+longestPause || taken[next] ||
				!beganWith(next, k) {
				continue
			}
			taken[next] = true
			a.again = append(a.again, again{k, next, next.OpenNs - next.DialNs - k.CloseNs})
			break
		}
	}
	if a.byChance() {
		a.again = nil
	}
	return a
}

// byChance: connections that are opened for whatever reason would come as soon. So it is where another attempt goes to
// a connection of the pool.
func (a attempts) byChance() bool {
	opened := a.Opened()
	if len(opened) < 2 {
		return false
	}
	// callers have them in order of their begin
	gap := (opened[len(opened)-1].OpenNs - opened[0].OpenNs) / int64(len(opened)-1)
	return 2*a.pause().Median > gap
}

// pause is the time from giving up to the next dial.
func (a attempts) pause() facts.Percentiles {
	var to []*facts.Conn
	by := map[*facts.Conn]int64{}
	for _, p := range a.again {
		to = append(to, p.to)
		by[p.to] = p.pauseNs
	}
	return facts.PercentilesOf(to, func(k *facts.Conn) int64 { return by[k] })
}

// longestPause before another attempt: redis-py 6 and 7 cap theirs at 10 s, which is the longest default of the known
// libraries.
const longestPause = int64(10e9)

// beganWith: the first command of a connection that does work is one that had no reply on another.
func beganWith(c *facts.Conn, k *facts.Conn) bool {
	if k.UnansweredOp == "" {
		return false
	}
	if c.Handshake != nil && c.Handshake.Op != "" {
		return c.Handshake.Op == k.UnansweredOp && c.Handshake.Bytes == k.UnansweredBytes
	}
	return c.ClosedWaiting() && c.UnansweredOp == k.UnansweredOp && c.UnansweredBytes == k.UnansweredBytes
}

// inARow is the longest chain of attempts.
func (a attempts) inARow() int {
	length, most := map[*facts.Conn]int{}, 1
	for _, p := range a.again { // by the end of the first
		length[p.to] = 2
		if p.from.AppCalls() == 0 { // it was another attempt itself
			length[p.to] = max(length[p.from], 1) + 1
		}
		most = max(most, length[p.to])
	}
	return most
}

func explainRetries(n *facts.Node) *Finding {
	callers := n.Callers()
	vain := n.NeverAnswered(callers)
	lost := map[string]bool{}
	for _, s := range n.UnansweredRequests() {
		if s.Retransmits >= facts.UnansweredRetransmits {
			lost[s.Client] = true // the request itself was not heard of
		}
	}
	for k := range vain {
		if lost[k.Client] {
			delete(vain, k)
		}
	}
	var worst attempts
	var cost, paused int64
	var found []*facts.Caller
	for _, c := range callers {
		a := attemptsOf(c, vain)
		if len(a.vain) < facts.MinRedials {
			continue
		}
		found = append(found, c)
		cost += a.waitNs
		for _, p := range a.again {
			cost += p.to.OpeningNs()
			paused += p.pauseNs
		}
		if len(a.vain) > len(worst.vain) {
			worst = a
		}
	}
	if len(found) == 0 {
		return nil
	}
	l := n.Overhead(callers)
	l.SpentNs += paused // on no connection
	f := findingOfLosses(l, n, cost+paused, 0.85)
	if f == nil {
		return nil
	}
	age := f.attempts(n, worst)
	if len(found) > 1 {
		f.support(recording.SourceTap, fmt.Sprintf("%d processes do so: %s", len(found), facts.CallerNames(found)),
			float64(len(found)), "processes")
	}
	f.remote(worst.Caller)
	f.Fix = retriesFix(n, age)
	f.See = []string{
		"https://redis.io/docs/latest/develop/clients/redis-py/produsage/#retries",
		"https://pkg.go.dev/github.com/redis/go-redis/v9#Options",
		"https://aws.amazon.com/builders-library/timeouts-retries-and-backoff-with-jitter/",
	}
	return f
}

// attempts tells of the waits of one caller, and what followed; it gives the timeout.
func (f *Finding) attempts(n *facts.Node, a attempts) facts.Percentiles {
	age := facts.PercentilesOf(a.vain, func(k *facts.Conn) int64 { return k.IdleNs })
	f.support(recording.SourceTap, fmt.Sprintf("%s gave up %d calls after %s (%s to %s) and closed their "+
		"connections; the server answered others meanwhile", a.Name, len(a.vain), facts.Dur(age.Median),
		facts.Dur(age.P10),
		facts.Dur(age.P90)), float64(len(a.vain)), "calls")
	late, _ := n.AnsweredBeforeTimeout(age.Median)
	f.support(recording.SourceTap, fmt.Sprintf("only %.0f calls were answered between %s and that: those given up "+
		"were not late, their replies never came", late, facts.Dur(age.Median/2)), late, "calls")
	if known := remedy.Defaults(n); known != "" {
		f.support(recording.SourceServer, "CLIENT LIST: "+known, 0, "")
	}
	if len(a.again) == 0 {
		f.Confidence = 0.65
		f.Title = "Replies never come, and the client waits a whole timeout for each before it tries again or gives up"
		f.doubt(recording.SourceTap, "what followed was not seen: another attempt may have gone to a connection that "+
			"was open, or the caller may have got an error", 0, "")
		return age
	}
	pause := a.pause()
	f.support(recording.SourceTap, fmt.Sprintf("after %d of these a new connection of the same process began with "+
		"the same command of the same length, %s later (%s to %s)", len(a.again), facts.Dur(pause.Median),
		facts.Dur(pause.P10),
		facts.Dur(pause.P90)), float64(len(a.again)), "calls")
	if most := a.inARow(); most > 2 {
		f.support(recording.SourceTap, fmt.Sprintf("up to %d attempts in a row: %s and more in one call", most,
			facts.Dur(int64(most-1)*age.Median)), float64(most), "attempts")
	}
	if 2*len(a.again) < len(a.vain) {
		f.Confidence = 0.75
	}
	f.doubt(recording.SourceTap, "that the next one is the same call tried again is inferred from its command and "+
		"length: keys are not looked at", 0, "")
	return age
}

func retriesFix(n *facts.Node, timeout facts.Percentiles) []string {
	fix := []string{fmt.Sprintf("Say how long a whole call may take, and make timeout x attempts + pauses fit: with "+
		"%s and 3 retries it is %s and more", facts.Dur(timeout.Median), facts.Dur(4*timeout.Median))}
	fix = append(fix, remedy.For(n, remedy.BoundRetries, nil)...)
	return append(fix, "Count attempts in the application's metrics (hooks, OpenTelemetry), so that a retry is not "+
		"taken for a slow call",
		"Find out who loses the replies: a proxy or balancer between the two, a server that died; try the server's "+
			"own address")
}
