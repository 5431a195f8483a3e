package cause

import (
	"fmt"
	"slices"

	"slowpath/internal/recording"
)

// poolMaxIdleChurn: the pool keeps fewer idle connections than are in use at a time: it closes the others when they are
// given back, and dials again for the next burst. Catalogue B3.
var poolMaxIdleChurn = Cause{
	ID:    "pool-maxidle-churn",
	Title: "The client's pool keeps too few idle connections: it closes what is given back, and dials again",
	Layer: "client",
	Needs: Needs{
		T0: "total_connections_received growing by more than 1 % of the commands (a hint)",
		T2: "connections that the client closes soon after a call while others of the same process live on, and new " +
			"ones right before calls",
	},
	After:   []string{"replica-loading-or-readonly-routing", "failover-window"},
	Explain: explainMaxIdle,
}

// churnOfCalls is the part of its calls for which a caller opens a connection from which on it is worth a word
// (catalogue B3); so are churnMany per second, whatever their part.
const churnOfCalls = 0.01

// passedSeldom: a pool passes none over that it is about to put away. The rest may be another pool's of the same
// process.
const passedSeldom = 0.1

func explainMaxIdle(n *Node) *Finding {
	callers := n.callers()
	found, all, cost := mostOf(slices.DeleteFunc(n.pooled(callers), func(r redial) bool { return !r.overflows() }))
	if len(found) == 0 {
		return nil
	}
	f := n.losses(callers).finding(n, cost, 0.88)
	if c := n.churn(); c.matters() && all.reused() && float64(len(all.ended)) >= mostlySlow*c.PerSecond*n.Seconds() {
		if f == nil {
			f = &Finding{Of: len(n.Ledger.Slow), Confidence: 0.88}
		}
		f.ExcessShare = max(f.ExcessShare, c.share())
		f.support(recording.SourceProbe, fmt.Sprintf("a call takes %s more on a new connection, and %s on an open "+
			"one: that is %.0f %% of what those wait for that get a new one", dur(c.PriceNs), dur(c.CallNs),
			c.share()*100), float64(c.PriceNs), "ns")
	}
	if f == nil {
		return nil
	}
	idle, work := spreadOf(all.ended, func(k *Conn) int64 { return k.IdleNs }), spreadOf(all.ended, (*Conn).work)
	f.support(recording.SourceTap, fmt.Sprintf("%s opened %.3g connections per second and closed %.3g itself, for "+
		"%.3g calls per second", all.Name, float64(len(all.opened()))/n.Seconds(),
		float64(len(all.ended))/n.Seconds(), float64(all.calls())/n.Seconds()), float64(len(all.ended))/n.Seconds(),
		"per second")
	f.support(recording.SourceTap, fmt.Sprintf("it closed them %s after their last call (9 of 10 within %s), soon "+
		"and after no fixed time: not for being idle", dur(idle.mid), dur(idle.high)), float64(idle.mid), "ns")
	if passed := passedOver(all.ended, dialsOf(all.fresh)); len(passed) > 0 {
		f.doubt(recording.SourceTap, fmt.Sprintf("%d of the %d had lain idle while others were dialled: those were "+
			"of another pool, or lost by the application", len(passed), len(all.ended)), float64(len(passed)),
			"connections")
	}
	f.support(recording.SourceTap, fmt.Sprintf("some were given to the next caller, others closed: %d to %d calls on "+
		"each, up to %d connections open at once", work.low, work.high, all.atOnce()), float64(all.atOnce()),
		"connections")
	f.opening(all)
	if len(found) > 1 {
		f.support(recording.SourceTap, fmt.Sprintf("%d processes do so: %s", len(found), callerNames(found)),
			float64(len(found)), "processes")
	}
	f.doubt(recording.SourceTap, "jobs that open a connection each, for a number of calls that varies, look much the "+
		"same", 0, "")
	f.remote(all.Caller)
	f.Fix = append([]string{fmt.Sprintf("Let the pool keep as many idle connections as are in use at a time: %d here",
		all.atOnce())}, n.library(map[string]string{
		"redigo": fmt.Sprintf("redigo: MaxIdle: %d, the same as MaxActive (MaxIdle is 0 unless set, and then every "+
			"Close really closes)", all.atOnce()),
		"jedis":    "Jedis, Lettuce with commons-pool: setMaxIdle(…) the same as setMaxTotal(…)",
		"go-redis": "go-redis: MaxIdleConns: 0 (no limit, the default) or PoolSize",
	}, "redigo", "jedis", "go-redis")...)
	f.See = []string{
		"https://pkg.go.dev/github.com/gomodule/redigo/redis#Pool",
		"https://redis.io/docs/latest/develop/clients/pools-and-muxing/",
	}
	return f
}

// oftenReused: a connection that a pool puts away when it has too many at that moment is used for a number of calls
// that has no bound, most of them for few. Measured with redigo: 1 call in the middle and 3 for 9 of 10; with Jedis 15
// and 103. Jobs that make a connection each have a like number of calls.
const oftenReused = 3

// reused reports whether some of the connections went from caller to caller while others were put away.
func (r redial) reused() bool {
	var all, most int64
	for _, k := range r.ended {
		all, most = all+k.work(), max(most, k.work())
	}
	return most*int64(len(r.ended)) >= oftenReused*all
}

// soonTimes: a connection that a pool has no room for is closed when it is given back, within this many times a call.
// One that is closed much later was looked at when it was to be taken, or by a timer. Measured with redigo, Jedis and
// go-redis v9 on a busy host: 0.01 to 1.3 times in the middle; go-redis v8, which counts idle time in whole seconds,
// with IdleTimeout 600 ms: 69 times.
const soonTimes = 4

// overflows: the caller puts connections away while it has others, not after a time that is a limit, and not each after
// the same number of calls, as one does that opens a connection per job. What it puts away it does not dial beside, as
// with connections that are lost, or not of one pool.
func (r redial) overflows() bool {
	work := spreadOf(r.ended, (*Conn).work)
	much := float64(len(r.ended)) > min(churnOfCalls*float64(r.calls()), churnMany*r.seconds)
	soon := spreadOf(r.ended, func(k *Conn) int64 { return k.IdleNs }).mid <= soonTimes*r.callNs()
	return !r.afterSameTime() && soon && r.atOnce() > 1 && work.high > work.low && much &&
		float64(len(passedOver(r.ended, dialsOf(r.fresh)))) <= passedSeldom*float64(len(r.ended))
}
