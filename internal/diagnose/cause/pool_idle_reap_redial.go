package cause

import (
	"fmt"
	"slices"

	"slowpath/internal/recording"
)

// poolIdleReapRedial: the pool closes connections that were idle for a while, and the next call pays for a new one.
// Catalogue B2, incident 001.
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

// limitSharp: a limit closes nothing earlier. Where what ends connections is something else that happens now and then,
// a tenth of them ends within a sixth of the median (exponential times).
const limitSharp = 0.5

// limitNear: bounds so near to each other, as a part of the greater, are one figure.
const limitNear = 0.1

// spareOften: where a new connection is opened for most calls while another of the same process lies idle, they are not
// of one pool.
const spareOften = 0.5

func explainIdleReap(n *Node) *Finding {
	callers := n.callers()
	found, all, cost := mostOf(slices.DeleteFunc(n.pooled(callers), func(r redial) bool { return !r.limited() }))
	if len(found) == 0 {
		return nil
	}
	f := n.losses(callers).finding(n, cost, 0.93)
	if f == nil {
		return nil
	}
	idle := spreadOf(all.ended, func(k *Conn) int64 { return k.IdleNs })
	work := spreadOf(all.ended, (*Conn).work)
	f.support(recording.SourceTap, fmt.Sprintf("%s closed %d connections between calls, each after %s to %s without "+
		"one (median %s): an idle limit of %s", all.Name, len(all.ended),
		dur(idle.low), dur(idle.high), dur(idle.mid), limitText(all.limit())), float64(idle.low), "ns")
	f.support(recording.SourceTap, fmt.Sprintf("%d of %d connections that it opened had their first call right "+
		"behind the handshake: somebody waited for them", len(all.fresh), len(all.opened())),
		float64(len(all.fresh)), "connections")
	f.opening(all)
	f.support(recording.SourceTap, fmt.Sprintf("%d calls were made on each; %s opens %d connections at once at most, "+
		"and makes %.2g calls per second", work.mid, all.Name, all.atOnce(),
		float64(all.calls())/n.Seconds()), float64(work.mid), "calls")
	if len(found) > 1 {
		f.support(recording.SourceTap, fmt.Sprintf("%d processes do so: %s", len(found), callerNames(found)),
			float64(len(found)), "processes")
	}
	if spare := all.spare(); spare > 0 {
		f.doubt(recording.SourceTap, fmt.Sprintf("for %.0f %% of the new connections another one of this process lay "+
			"idle: it may have several pools", spare*100), spare, "of them")
	}
	if t, ok := n.Config("timeout"); ok && t != "0" {
		f.doubt(recording.SourceServer, "the server closes idle connections itself after "+t+" s (timeout), but "+
			"these were closed by the client", 0, "")
	}
	f.remote(all.Caller)
	f.Fix = append([]string{fmt.Sprintf("Keep some connections whatever the traffic: the pool has to outlast pauses "+
		"of %s and more", dur(idle.mid))}, n.library(map[string]string{
		"go-redis": "go-redis v9: MinIdleConns: 2 and ConnMaxIdleTime: -1 (30 min by default, looked at when a " +
			"call takes a connection)",
		"go-redis@8": "go-redis v8: MinIdleConns: 2 and IdleTimeout: -1 (5 min by default, looked at each minute: " +
			"IdleCheckFrequency)",
		"go-redis@7": "go-redis v7: MinIdleConns: 2 and IdleTimeout: -1 (5 min by default, looked at each minute: " +
			"IdleCheckFrequency)",
		"go-redis@6": "go-redis v6: MinIdleConns: 2 and IdleTimeout: -1 (5 min by default, looked at each minute: " +
			"IdleCheckFrequency)",
		"redigo": "redigo: IdleTimeout: 0 (never), or longer than the pauses",
		"jedis": "Jedis: setMinIdle(2), setMinEvictableIdleDuration(Duration.ofMinutes(30)); its " +
			"ConnectionPoolConfig evicts after 60 s idle",
		"redisson": "Redisson: idleConnectionTimeout (10 s), connectionMinimumIdleSize",
		"rueidis": "rueidis: BlockingPoolCleanup: 0 (off, the default) and BlockingPoolMinSize, for blocking and " +
			"dedicated calls; the others share connections that stay",
		"node-redis": "node-redis: createClientPool with minimum: 2, cleanupDelay (3 s by default) longer than the " +
			"pauses",
		"lettuce": "Lettuce with commons-pool: setMinIdle(2), setTimeBetweenEvictionRuns(Duration.ofMillis(-1)); or " +
			"no pool: its one connection stays",
	}, "go-redis", "go-redis@8", "go-redis@7", "go-redis@6", "redigo", "jedis", "redisson", "rueidis", "node-redis",
		"lettuce")...)
	f.Fix = append(f.Fix, "Stay below the server's timeout and what a load balancer between allows (350 s at an AWS "+
		"NLB), or send a keepalive")
	f.See = []string{
		"https://redis.io/docs/latest/develop/clients/pools-and-muxing/",
		"https://pkg.go.dev/github.com/redis/go-redis/v9#Options",
	}
	return f
}

// limit is what the pool's idle limit lies between: it kept what had been idle for as long as a connection was on
// average between its calls, and closed what had been for as long as one was at its end. atLeast is 0 where each had
// one call only.
func (r redial) limit() (atLeast, atMost int64) {
	atMost = r.ended[0].IdleNs
	for _, k := range r.ended {
		atMost = min(atMost, k.IdleNs)
		if gaps := k.work() - 1; gaps > 0 && k.OpenNs > 0 {
			atLeast = max(atLeast, (k.CloseNs-k.OpenNs-k.IdleNs-k.InFlightNs)/gaps)
		}
	}
	if atLeast > atMost { // something else closed some
		return 0, spreadOf(r.ended, func(k *Conn) int64 { return k.IdleNs }).low
	}
	return atLeast, atMost
}

func limitText(atLeast, atMost int64) string {
	switch {
	case 2*atLeast < atMost:
		return "at most " + dur(atMost)
	case float64(atMost-atLeast) <= limitNear*float64(atMost):
		return "about " + dur((atLeast+atMost)/2)
	}
	return dur(atLeast) + " to " + dur(atMost)
}

// limited: the connections were put away after the same time without a call, and were missed.
func (r redial) limited() bool { return r.afterSameTime() && r.spare() <= spareOften }

func (r redial) afterSameTime() bool {
	idle := spreadOf(r.ended, func(k *Conn) int64 { return k.IdleNs })
	return float64(idle.low) >= limitSharp*float64(idle.mid) && idle.mid > r.callNs()
}

// spare is the part of the new connections that were opened while another of the same process lay idle, and went on to.
func (r redial) spare() float64 {
	spare := 0
	for _, k := range r.fresh {
		// until then the pool may be closing what it did not use
		from, ready := k.OpenNs-k.DialNs, k.OpenNs+max(k.openingNs(), r.callNs())
		for _, o := range r.Conns {
			if o != k && o.CloseNs > ready && o.CloseNs-o.IdleNs <= from {
				spare++
				break
			}
		}
	}
	return float64(spare) / float64(max(len(r.fresh), 1))
}
