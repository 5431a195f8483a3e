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
		T0: "total_connections_received growing with the calls, at a low rate (a hint)",
		T2: "connections that the client closes after the same time without a call, and new ones right before calls",
	},
	Explain: explainIdleReap,
}

// limitNear: bounds so near to each other, as a part of the greater, are one figure.
const limitNear = 0.1

func explainIdleReap(n *facts.Node) *Finding {
	callers := n.Callers()
	sum := facts.SumRedials(slices.DeleteFunc(n.PoolRedials(callers),
		func(r facts.Redial) bool { return !r.ByIdleLimit() }))
	if len(sum.Callers) == 0 {
		return nil
	}
	most := sum.Largest
	f := findingOfLosses(n.Overhead(callers), n, sum.CostNs, 0.93)
	if f == nil {
		return nil
	}
	idle := facts.PercentilesOf(most.Closed, func(k *facts.Conn) int64 { return k.IdleNs })
	work := facts.PercentilesOf(most.Closed, (*facts.Conn).AppCalls)
	f.support(recording.SourceTap, fmt.Sprintf("%s closed %d connections between calls, each after %s to %s without "+
		"one (median %s): an idle limit of %s", most.Name, len(most.Closed),
		facts.Dur(idle.P10), facts.Dur(idle.P90), facts.Dur(idle.Median), limitText(limit(most))), float64(idle.P10),
		"ns")
	f.support(recording.SourceTap, fmt.Sprintf("%d of %d connections that it opened had their first call right "+
		"behind the handshake: somebody waited for them", len(most.Dialled), len(most.Opened())),
		float64(len(most.Dialled)), "connections")
	f.opening(most)
	f.support(recording.SourceTap, fmt.Sprintf("%d calls were made on each; %s opens %d connections at once at most, "+
		"and makes %.2g calls per second", work.Median, most.Name, most.MaxConcurrent(),
		float64(most.AppCalls())/n.Seconds()), float64(work.Median), "calls")
	if len(sum.Callers) > 1 {
		f.support(recording.SourceTap, fmt.Sprintf("%d processes do so: %s", len(sum.Callers),
			facts.CallerNames(sum.Callers)),
			float64(len(sum.Callers)), "processes")
	}
	if spare := most.SpareShare(); spare > 0 {
		f.doubt(recording.SourceTap, fmt.Sprintf("for %.0f %% of the new connections another one of this process lay "+
			"idle: it may have several pools", spare*100), spare, "of them")
	}
	if t, ok := n.Config("timeout"); ok && t != "0" {
		f.doubt(recording.SourceServer, "the server closes idle connections itself after "+t+" s (timeout), but "+
			"these were closed by the client", 0, "")
	}
	f.remote(most.Caller)
	f.Fix = append([]string{fmt.Sprintf("Keep some connections whatever the traffic: the pool has to outlast pauses "+
		"of %s and more", facts.Dur(idle.Median))}, remedy.For(n, remedy.KeepIdle, nil)...)
	f.Fix = append(f.Fix, "Stay below the server's timeout and what a load balancer between allows (350 s at an AWS "+
		"NLB), or send a keepalive")
	f.See = []string{
		"https://redis.io/docs/latest/develop/clients/pools-and-muxing/",
		"https://pkg.go.dev/github.com/redis/go-redis/v9#Options",
	}
	return f
}

// limit is what the pool's idle limit lies between: it kept what had been idle for as long as a connection was on
// average between its calls, and closed what had been for as long as one was at its end. AtLeast is 0 where each had
// one call only.
func limit(r facts.Redial) (atLeast, atMost int64) {
	atMost = r.Closed[0].IdleNs
	for _, k := range r.Closed {
		atMost = min(atMost, k.IdleNs)
		if gaps := k.AppCalls() - 1; gaps > 0 && k.OpenNs > 0 {
			atLeast = max(atLeast, (k.CloseNs-k.OpenNs-k.IdleNs-k.InFlightNs)/gaps)
		}
	}
	if atLeast > atMost { // something else closed some
		return 0, facts.PercentilesOf(r.Closed, func(k *facts.Conn) int64 { return k.IdleNs }).P10
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
