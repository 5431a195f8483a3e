package cause

import (
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// handshakeExtraRTTs: the handshake of a new connection takes several round trips, one after the other, and the
// connection is used for little more.
var handshakeExtraRTTs = Cause{
	ID:      "handshake-extra-rtts",
	Options: []remedy.Topic{remedy.LeaveOutSetInfo},
	// What has callers open connections has them greet the server, too.
	AfterClass: []Class{Redial},
	After:      []string{"replica-loading-or-readonly-routing", "failover-window"},
	Explain:    explainHandshakes,
}

func explainHandshakes(n *facts.Node) *Finding {
	callers := caller.Callers(n)
	var found []*caller.Caller
	var most *caller.Caller
	var fresh []*caller.Conn
	var extra int64
	driven := connection.OpenedForKnownReason(n, callers)
	for _, c := range callers {
		greeted := c.ConnsWhere(func(k *caller.Conn) bool {
			return k.HandshakeRoundTrips() > 1 && !k.OpenedAheadOfUse(c.RoundTripNs())
		})
		if len(greeted) < connection.MinRedials {
			continue
		}
		found = append(found, c)
		habit := connection.PoolCausesRedials(n, c)
		for _, k := range greeted {
			if habit || driven[k] {
				extra += k.HandshakeRoundTripNs() * int64(k.HandshakeRoundTrips()-1)
			} else { // only the application wants so many connections: all that they cost is their handshake
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
	f := findingOfLosses(connection.TotalOverhead(n.Case), n, extra)
	if f == nil {
		return nil
	}
	trips := caller.PercentilesOf(fresh, func(k *caller.Conn) int64 { return int64(k.HandshakeRoundTrips()) })
	work := caller.PercentilesOf(fresh, (*caller.Conn).AppCalls)
	f.support(recording.SourceTap, float64(trips.Median), "round trips",
		"each of %d new connections of %s took %s before its first command, where one is enough: %s", len(fresh),
		most.Name, counted(trips.Median, "round trip"), caller.CommonHandshake(fresh))
	cost := caller.PercentilesOf(fresh, (*caller.Conn).OpeningNs)
	f.support(recording.SourceTap, float64(cost.Median), "ns",
		"that is %s, against %s for a call; each connection made %s", format.Brief(cost.Median),
		format.Brief(most.RoundTripNs()),
		counted(work.Median, "call"))
	f.support(recording.SourceTap, float64(len(fresh))/n.Seconds(), "per second",
		"it opens %s connections per second", format.Rounded(float64(len(fresh))/n.Seconds()))
	f.supportCallers(found)
	f.doubtRemote(most)
	f.blameLoads(n, found...)
	f.FixSteps = append(oneClient(n), handshakeFix(n, caller.CommonHandshake(fresh))...)
	return f
}

// handshakeFix says which commands can be left out of the handshake of connections that cannot be kept.
func handshakeFix(n *facts.Node, ops string) (steps []remedy.Step) {
	if strings.Contains(ops, "CLIENT SETINFO") {
		steps = append(steps, remedy.Steps(n, remedy.LeaveOutSetInfo, nil)...)
	}
	for _, o := range []struct{ op, id, text string }{
		{"CLIENT MAINT_NO", "leave-out-maint-notifications", "No CLIENT MAINT_NOTIFICATIONS: go-redis " +
			"MaintNotificationsConfig{Mode: maintnotifications.ModeDisabled}, Lettuce " +
			"MaintNotificationsConfig.disabled(), redis-py MaintNotificationsConfig(enabled=False)"},
		{"SELECT", "leave-out-select", "No SELECT: use database 0, and one server or a prefix per application " +
			"instead of databases"},
		{"CLIENT SETNAME", "setname-in-hello", "No CLIENT SETNAME: HELLO 3 AUTH user password SETNAME name does it " +
			"in the same round trip"},
		{"COMMAND", "update-library", "Update the client library: an old one asks for COMMAND on each connection"},
	} {
		if strings.Contains(ops, o.op) {
			steps = append(steps, inApplication(o.id, "%s", o.text))
		}
	}
	return steps
}
