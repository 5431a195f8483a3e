package cause

import (
	"fmt"
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/recording"
)

// handshakeExtraRTTs: a new connection introduces itself in several round trips, one after the other, and is used for
// little more than that.
var handshakeExtraRTTs = Cause{
	ID:    "handshake-extra-rtts",
	Title: "New connections introduce themselves in a row of round trips before they work",
	Layer: "client",
	Needs: Needs{
		T0: "commandstats: hello, auth, select, client|setinfo about as often as connections are made (a hint)",
		T2: "the round trips of each handshake, one after the other",
	},
	After:   []string{"replica-loading-or-readonly-routing", "failover-window"},
	Explain: explainHandshakes,
}

// oneTrip does all that a handshake has to: HELLO 3 AUTH user password SETNAME name, or one pipeline.
const oneTrip = 1

func explainHandshakes(n *facts.Node) *Finding {
	callers := n.Callers()
	var found []*facts.Caller
	var most *facts.Caller
	var fresh []*facts.Conn
	var extra int64
	driven := n.OpenedForKnownReason(callers)
	for _, c := range callers {
		greeted := c.ConnsWhere(func(k *facts.Conn) bool {
			return k.HandshakeRoundTrips() > oneTrip &&
				!k.OpenedAheadOfUse(c.RoundTripNs())
		})
		if len(greeted) < facts.MinRedials {
			continue
		}
		found = append(found, c)
		habit := n.PoolCausesRedials(c)
		for _, k := range greeted {
			if habit || driven[k] {
				extra += k.HandshakeRoundTripNs() * int64(k.HandshakeRoundTrips()-oneTrip)
			} else { // nothing but the application wants so many connections: all that they cost is their handshakes' price
				extra += k.OpeningNs()
			}
		}
		if len(greeted) > len(fresh) {
			most, fresh = c, greeted
		}
	}
	if most == nil {
		return nil
	}
	f := findingOfLosses(n.TotalOverhead(), n, extra, 0.92)
	if f == nil {
		return nil
	}
	trips, work := facts.PercentilesOf(fresh, func(k *facts.Conn) int64 { return int64(k.HandshakeRoundTrips()) }),
		facts.PercentilesOf(fresh,
			(*facts.Conn).AppCalls)
	f.support(recording.SourceTap, fmt.Sprintf("each of %d new connections of %s took %d round trips before its "+
		"first command, where one would do: %s", len(fresh), most.Name, trips.Median, facts.CommonHandshake(fresh)),
		float64(trips.Median), "round trips")
	cost := facts.PercentilesOf(fresh, (*facts.Conn).OpeningNs)
	f.support(recording.SourceTap, fmt.Sprintf("that is %s, and %s for a call; %d calls were made on each",
		facts.Dur(cost.Median), facts.Dur(most.RoundTripNs()), work.Median), float64(cost.Median), "ns")
	f.support(recording.SourceTap, fmt.Sprintf("its connections are made at %.3g per second",
		float64(len(fresh))/n.Seconds()), float64(len(fresh))/n.Seconds(), "per second")
	if len(found) > 1 {
		f.support(recording.SourceTap, fmt.Sprintf("%d processes do so: %s", len(found), facts.CallerNames(found)),
			float64(len(found)), "processes")
	}
	f.remote(most)
	f.Fix = append([]string{"Make connections once and keep them: one client object per process, not one per job or " +
		"request"}, greetingFix(n, facts.CommonHandshake(fresh))...)
	f.See = []string{
		"https://redis.io/docs/latest/commands/hello/",
		"https://pkg.go.dev/github.com/redis/go-redis/v9#Options",
	}
	return f
}

// greetingFix says which commands can be left out.
func greetingFix(n *facts.Node, ops string) []string {
	var out []string
	if strings.Contains(ops, "CLIENT SETINFO") {
		out = append(out, remedy.For(n, remedy.LeaveOutSetInfo, nil)...)
	}
	for _, o := range []struct{ op, fix string }{
		{"CLIENT MAINT_NO", "CLIENT MAINT_NOTIFICATIONS: go-redis MaintNotificationsConfig{Mode: " +
			"maintnotifications.ModeDisabled}, Lettuce MaintNotificationsConfig.disabled(), redis-py " +
			"MaintNotificationsConfig(enabled=False)"},
		{"SELECT", "SELECT: database 0, one server or a prefix per application in place of databases"},
		{"CLIENT SETNAME", "CLIENT SETNAME: HELLO 3 AUTH … SETNAME … does it in the same round trip"},
		{"READONLY", "READONLY is needed where replicas are read; keep those connections"},
		{"COMMAND", "COMMAND: an old client library that asks for it on each connection; update it"},
	} {
		if strings.Contains(ops, o.op) {
			out = append(out, o.fix)
		}
	}
	return out
}
