package cause

import (
	"fmt"
	"strconv"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// evictionCycle: at maxmemory, room is made in the main thread before each write; before 6.2 without a bound of time.
var evictionCycle = Cause{
	ID:    "eviction-cycle",
	Title: "The server is at maxmemory: evicting keys holds the event loop",
	Layer: "server",
	Class: ServerStall,
	Needs: Needs{
		T0: "evicted_keys rising with used_memory at maxmemory, total_eviction_exceeded_time (7.0), or LATENCY " +
			"eviction-cycle, while calls were slow",
		T1: "the main thread on the CPU without a pause meanwhile",
		T2: "each write that held the main thread longer than its command took by the server's own clock",
	},
	Explain: explainEviction,
}

// atMaxmemory is the part of maxmemory above which evictions are no accident: what clients' buffers take comes and
// goes.
const atMaxmemory = 0.9

func explainEviction(n *facts.Node) *Finding {
	evicted := n.Growth("evicted_keys")
	if evicted == 0 {
		return nil
	}
	h := n.ClaimOfSuspects(func(s account.Suspect) bool {
		return s.Kind == account.KindEvict || n.KindOf(s) == facts.KindEviction
	})
	limit, _ := n.Info("maxmemory").Last()
	used, _ := n.Info("used_memory").Max()
	share, d := evictionShare(n, evicted)
	// Where the thread has no time left, calls queue for the evictions of every write, each too short to be
	// seen.
	pattern := share >= evictionPattern && d.Total() >= facts.SaturatedDemand && used >= atMaxmemory*limit
	if !h.Matters() && !pattern {
		return nil
	}
	f := finding(n, h.Claim, max(h.Confidence(n), 0.8))
	if pattern {
		f.ExcessShare = max(f.ExcessShare, share)
		f.support(recording.SourceServer, fmt.Sprintf("evicting them takes about %.0f %% of the main thread's work, "+
			"which has no time left (estimated at %.1f µs per key)", share*100, evictedKeyNs/1e3), share, "")
	}
	f.supportWaits(n, h, "eviction")
	f.support(recording.SourceServer, fmt.Sprintf("%.0f keys were evicted in the watch (%.0f per second on average)",
		evicted, evicted/n.Seconds()), evicted, "keys")
	if limit > 0 {
		f.support(recording.SourceServer, fmt.Sprintf("used_memory reached %.0f MB of maxmemory %.0f MB", used/1e6,
			limit/1e6), used/limit, "")
		if used < atMaxmemory*limit {
			f.doubt(recording.SourceServer, "that is below maxmemory", used/limit, "")
			f.Confidence = min(f.Confidence, 0.5)
		}
	}
	if ms := n.Growth("total_eviction_exceeded_time"); ms > 0 {
		f.support(recording.SourceServer, fmt.Sprintf("it was above maxmemory for %.0f ms "+
			"(total_eviction_exceeded_time)", ms), ms, "ms")
	}
	f.Fix = evictionFix(n, used)
	f.See = []string{
		"https://redis.io/docs/latest/develop/reference/eviction/",
		"https://github.com/redis/redis/pull/7653",
	}
	return f
}

const (
	// evictedKeyNs is what the eviction of a small key takes in step with the writes: measured 1.0 µs on 7.0.15
	// (allkeys-lru).
	evictedKeyNs = 1000
	// evictionPattern of the main thread's work is reason enough where it has no time left.
	evictionPattern = 0.25
)

// evictionShare estimates the part of the main thread's work that evictions make.
func evictionShare(n *facts.Node, evicted float64) (float64, facts.Demand) {
	d, ok := n.Demand()
	if !ok || d.Run <= 0 {
		return 0, d
	}
	return min(1, evicted*evictedKeyNs/1e9/n.Seconds()/d.Run), d
}

func evictionFix(n *facts.Node, used float64) []string {
	fix := []string{
		fmt.Sprintf("CONFIG SET maxmemory %.0fmb, if the host has the memory: leave room for a doubling "+
			"of the hash table and for clients' buffers; or add shards", max(used*1.5/1e6, 1)),
		"Set TTLs, so that keys go before memory is full.",
	}
	if v, ok := n.Config("maxmemory-eviction-tenacity"); ok {
		if t, err := strconv.Atoi(v); err == nil && t > 10 {
			fix = append([]string{fmt.Sprintf("CONFIG SET maxmemory-eviction-tenacity 10   # it is %d: one eviction "+
				"may take up to %s", t, tenacityLimit(t))}, fix...)
		}
	} else if !facts.ServerAtLeast(n, 6, 2) {
		fix = append(fix, "Upgrade to 6.2 or newer: there one round of eviction is bounded to about 0.5 ms.")
	}
	if v, ok := n.Config("lazyfree-lazy-eviction"); ok && v == "no" {
		fix = append(fix, "Where the values are big: CONFIG SET lazyfree-lazy-eviction yes")
	}
	return append(fix, "Lower maxmemory in small steps: each CONFIG SET maxmemory evicts down to the new limit at "+
		"once.")
}

// tenacityLimit is evict.c evictionTimeLimitUs: 50 µs per step up to 10, then 15 % more per step; 100 is no limit.
func tenacityLimit(t int) string {
	if t >= 100 {
		return "any time"
	}
	us := 500.0
	for range t - 10 {
		us *= 1.15
	}
	return facts.Dur(int64(us * 1e3))
}
