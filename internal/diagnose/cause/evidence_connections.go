package cause

import (
	"fmt"
	"maps"
	"strings"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// supportOpening says what a new connection costs before its first command, and its handshake.
func (f *Finding) supportOpening(r connection.Redial) {
	cost, trips := caller.PercentilesOf(r.Dialled, (*caller.Conn).OpeningNs),
		caller.PercentilesOf(r.Dialled, func(k *caller.Conn) int64 { return int64(k.HandshakeRoundTrips()) })
	dial := caller.PercentilesOf(r.Dialled, func(k *caller.Conn) int64 { return k.DialNs })
	text := fmt.Sprintf("a new connection costs %s before its first command (dial %s", format.Brief(cost.Median),
		format.Brief(dial.Median))
	if ops := caller.CommonHandshake(r.Dialled); ops != "" {
		text += fmt.Sprintf(", then %s: %s", counted(trips.Median, "round trip"), ops)
	}
	f.support(recording.SourceTap, float64(cost.Median), "ns", "%s); a call takes %s", text,
		format.Brief(r.RoundTripNs()))
}

// supportCallers names the callers that do what the cause says, where there are several.
func (f *Finding) supportCallers(found []*caller.Caller) {
	if len(found) > 1 {
		f.support(recording.SourceTap, float64(len(found)), "processes",
			"%d processes do so: %s", len(found), caller.CallerNames(found))
	}
}

// doubtRemote says that the calls were seen at the server only.
func (f *Finding) doubtRemote(c *caller.Caller) {
	if c.PID == 0 {
		f.doubt(recording.SourceTap, 0, "",
			"the callers run on other hosts: their processes and the time of their dials "+
				"were not seen (watch one of those hosts, too)")
	}
}

// findingOfLosses starts the finding of a cause that took some of the callers' time; nil where it took little of it.
func findingOfLosses(l connection.Overhead, n *facts.Node, ns int64) *Finding {
	if float64(ns) < facts.MinShare*float64(l.SpentNs) {
		return nil
	}
	return lossesOf(l, n, ns, longestOpening(n))
}

// longestOpening is the 90th percentile of what new connections cost that calls waited for, in nanoseconds, with the
// wait of the library before it tried again.
func longestOpening(n *facts.Node) int64 {
	var dialled []*caller.Conn
	waits := map[*caller.Conn]int64{}
	for _, c := range caller.Callers(n) {
		dialled = append(dialled, c.ConnsWhere(func(k *caller.Conn) bool {
			return k.OpenNs > 0 && !k.OpenedAheadOfUse(c.RoundTripNs())
		})...)
		maps.Copy(waits, connection.RetryWaits(c))
	}
	return caller.PercentilesOf(dialled, func(k *caller.Conn) int64 { return k.OpeningNs() + waits[k] }).P90
}

// lossesOf is findingOfLosses however little time it is, eachNs of it at once.
func lossesOf(l connection.Overhead, n *facts.Node, ns, eachNs int64) *Finding {
	f := &Finding{Of: n.Ledger.Calls()}
	f.lose(n, facts.LostOpening, float64(ns), eachNs)
	f.support(recording.SourceTap, float64(ns), "ns",
		"callers lost %s to it, of the %s that they spent on their connections (%.0f %%)", format.Brief(ns),
		format.Brief(l.SpentNs), 100*float64(ns)/float64(l.SpentNs))
	return f
}

// loseByChurn claims what callers lose by connections that are opened and closed all the time.
func (f *Finding) loseByChurn(n *facts.Node, c connection.Churn) {
	all := c.PerSecond * float64(c.OpeningNs) * n.Seconds()
	if n.Ledger.Users.Calls > 0 {
		f.infer()
		f.lose(n, facts.LostOpening, all, c.OpeningNs)
		return
	}
	f.loseBeside(n, facts.LostOpening, c.Share(), c.OpeningNs)
	f.inAll(n, all)
}

// openedTogether starts the finding of a cause by which many connections were opened together during some spans. cost
// is what calls waited for them, openingNs what one took. It is nil where nobody can have noticed. Slow calls during
// the spans belong to it: they are handshakes, or waited behind handshakes.
func openedTogether(n *facts.Node, callers []*caller.Caller, spans facts.Spans, cost, openingNs int64) (*Finding,
	facts.Claim,
) {
	felt, users := n.ClaimOf(spans.CallTimes), n.TapClaim(spans.CallTimes)
	l := connection.OverheadOf(n, callers)
	took := cost + users.Ns
	many := float64(users.Users.Calls) > facts.HealthyMaxShare*float64(users.Users.AllCalls)
	if float64(took) < facts.MinShare*float64(l.SpentNs) && max(openingNs, felt.MaxNs) < facts.HealthyMaxNs && !many {
		return nil, felt
	}
	f := finding(n, felt)
	f.SlowCalls = 0 // most of its cost is before the calls
	f.lose(n, facts.LostOpening, float64(cost), openingNs)
	return f, felt
}

// supportShortLived says what the tap saw of connections that opened and closed during the watch: of which
// clients, and for how many commands.
func (f *Finding) supportShortLived(n *facts.Node) {
	byWho := map[string]int64{}
	var ages []int64
	var calls, closed int64
	for e := range n.Rec.Conns(n.Address, recording.KindClose) {
		if e.AgeNs <= 0 || e.Side != recording.Server {
			continue // a connection of a client on this host is seen at both ends
		}
		closed++
		calls += e.Calls
		ages = append(ages, e.AgeNs)
		who := caller.HostTextOf(n.Case, e.Client)
		if e.Comm != "" {
			who = e.Comm
		}
		byWho[who]++
	}
	if closed < degree.Many {
		return
	}
	who := facts.KeysByValue(byWho)[0]
	f.support(recording.SourceTap, float64(closed), "connections",
		"%s opened and closed during the watch, with %.1f commands each, half of them within %s; %.0f %% of them by %s",
		counted(closed, "connection"), float64(calls)/float64(closed), format.Brief(facts.PercentilesOfNs(ages).Median),
		100*float64(byWho[who])/float64(closed), who)
}

// because adds to the first of some steps why it helps, or what else is to be known.
func because(steps []remedy.Step, why string) []remedy.Step {
	steps[0].Text = strings.TrimPrefix(steps[0].Text+". "+why, ". ")
	return steps
}

// offered is what the libraries in use offer, or those of some callers, and why; else why alone, which says what to do.
func offered(n *facts.Node, topic remedy.Topic, values remedy.Values, why string, of ...*caller.Caller) []remedy.Step {
	if steps := remedy.Steps(n, topic, values, of...); len(steps) > 0 {
		return because(steps, why)
	}
	return []remedy.Step{{ID: string(topic), Kind: remedy.Change, Restart: "the application", Text: why}}
}

// oneClient keeps the connections of a process. Where its library is not known, one text stands for all.
func oneClient(n *facts.Node) []remedy.Step {
	if steps := remedy.Steps(n, remedy.OneClient, nil); len(caller.Libraries(n)) > 0 && len(steps) > 0 {
		return steps
	}
	return []remedy.Step{
		inApplication(string(remedy.OneClient), "Keep connections: one client object with a pool per process, "+
			"created at its start, not one per job or request (redis-py ConnectionPool, go-redis Client, "+
			"JedisPooled, phpredis pconnect; redigo: MaxIdle is 0 by default, so every Close really closes)"),
	}
}

// minSlowShare is the least share of a caller's calls, or of its closed connections, that must follow a pattern.
const minSlowShare = degree.Most
