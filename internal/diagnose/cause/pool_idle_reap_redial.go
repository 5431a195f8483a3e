package cause

import (
	"fmt"
	"slices"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/recording"
)

// poolIdleReapRedial: the pool closes connections that were idle for a while, and the next call pays for a new one.
var poolIdleReapRedial = Cause{
	ID:    "pool-idle-reap-redial",
	Title: "The client's pool closes idle connections, and its next calls pay for new ones",
	Layer: "client",
	Needs: Needs{
		T0: "total_connections_received rises with the calls, at a low rate (a hint)",
		T2: "connections that the client closes after the same time without a call, and new ones right before calls",
	},
	Explain: explainIdleReap,
}

// limitNear: bounds that differ by at most this share of the greater are one value.
const limitNear = 0.1

func explainIdleReap(n *facts.Node) *Finding {
	callers := n.Callers()
	found, all, cost := facts.MostOf(slices.DeleteFunc(n.Pooled(callers),
		func(r facts.Redial) bool { return !r.Limited() }))
	if len(found) == 0 {
		return nil
	}
	f := findingOfLosses(n.LostTime(callers), n, cost, 0.93)
	if f == nil {
		return nil
	}
	idle := facts.SpreadOf(all.Ended, func(k *facts.Conn) int64 { return k.IdleNs })
	work := facts.SpreadOf(all.Ended, (*facts.Conn).Work)
	f.support(recording.SourceTap, float64(idle.Low), "ns",
		"%s closed %s, each after %s to %s without a call (median %s): an idle limit of %s", all.Name,
		counted(len(all.Ended), "idle connection"), facts.Dur(idle.Low), facts.Dur(idle.High), facts.Dur(idle.Mid),
		limitText(limit(all)))
	f.support(recording.SourceTap, float64(len(all.Fresh)), "connections",
		"%d of %d connections that it opened had their first call right after the handshake: a caller waited for them",
		len(all.Fresh), len(all.Opened()))
	f.supportOpening(all)
	f.support(recording.SourceTap, float64(work.Mid), "calls",
		"each made %s; %s has up to %s open at once, and makes %.2g calls per second", counted(work.Mid, "call"),
		all.Name, counted(all.AtOnce(), "connection"), float64(all.Calls())/n.Seconds())
	if len(found) > 1 {
		f.support(recording.SourceTap, float64(len(found)), "processes",
			"%d processes do so: %s", len(found), facts.CallerNames(found))
	}
	if spare := all.Spare(); spare > 0 {
		f.doubt(recording.SourceTap, spare, "of them",
			"during %.0f %% of the dials another connection of this process was idle: it may have several pools",
			spare*100)
	}
	if t, ok := n.Config("timeout"); ok && t != "0" {
		f.doubt(recording.SourceServer, 0, "",
			"the server closes idle connections itself after %s s (timeout), but the client closed these", t)
	}
	f.doubtRemote(all.Caller)
	f.Fix = append([]string{fmt.Sprintf("Keep some connections whatever the traffic: "+
		"the pool has to outlast pauses of %s and more", facts.Dur(idle.Mid))},
		remedy.For(n, remedy.KeepIdle, nil)...)
	f.Fix = append(f.Fix,
		"Stay below the server's timeout and what a load balancer on the path "+
			"allows (350 s at an AWS NLB), or send a keepalive")
	f.See = []string{
		"https://redis.io/docs/latest/develop/clients/pools-and-muxing/",
		"https://pkg.go.dev/github.com/redis/go-redis/v9#Options",
	}
	return f
}

// limit gives the bounds of the pool's idle limit: it kept connections that were idle as long as one was on average
// between its calls, and closed those that were idle as long as one was at its end. AtLeast is 0 where each had one
// call only.
func limit(r facts.Redial) (atLeast, atMost int64) {
	atMost = r.Ended[0].IdleNs
	for _, k := range r.Ended {
		atMost = min(atMost, k.IdleNs)
		if gaps := k.Work() - 1; gaps > 0 && k.OpenNs > 0 {
			atLeast = max(atLeast, (k.CloseNs-k.OpenNs-k.IdleNs-k.InFlightNs)/gaps)
		}
	}
	if atLeast > atMost { // something else closed some
		return 0, facts.SpreadOf(r.Ended, func(k *facts.Conn) int64 { return k.IdleNs }).Low
	}
	return atLeast, atMost
}

func limitText(atLeast, atMost int64) string {
	switch {
	case 2*atLeast < atMost:
		return "at most " + facts.Dur(atMost)
	case float64(atMost-atLeast) <= limitNear*float64(atMost):
		return "about " + facts.Dur((atLeast+atMost)/2)
	}
	return facts.Dur(atLeast) + " to " + facts.Dur(atMost)
}
