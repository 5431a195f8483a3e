package cause

import (
	"fmt"
	"strconv"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
	"slowpath/internal/source/profile/stacks"
)

// evictionCycle: at maxmemory, the main thread evicts keys before each write; before 6.2 without a time limit.
var evictionCycle = Cause{
	ID:      "eviction-cycle",
	Class:   ServerStall,
	Changes: []string{"maxmemory*", "request size"},
	Explain: explainEviction,
}

func explainEviction(n *facts.Node) *Finding {
	evicted := n.Growth(series.EvictedKeys)
	if evicted == 0 {
		return nil
	}
	h := mainthread.ClaimOfSuspects(n, func(s account.Suspect) bool {
		return s.Kind == account.KindEvict || mainthread.KindOf(n, s) == mainthread.KindEviction
	})
	limit, _ := n.Series(series.MaxMemory).Last()
	used, _ := n.Series(series.UsedMemory).Max()
	share, d := evictionShare(n, evicted)
	// Where the thread has no time left, calls queue for the evictions of every write, each too short to be seen.
	pattern := share >= degree.Part && d.Total() >= facts.SaturatedDemand && used >= degree.NearlyAll*limit
	part, seen, sampled := inLoop(n, stacks.Evict)
	h.Claim = add(h.Claim, seen)
	if !h.Matters() && !pattern {
		return nil
	}
	f := finding(n, h.Claim)
	if pattern {
		f.loseOfCalls(n, share, 0)
		f.support(recording.SourceServer, share, "",
			"evictions take about %.0f %% of the main thread's work, and it has no time left (estimated at %.1f µs "+
				"per key)", share*100, freedKeyNs/1e3)
	}
	if sampled {
		f.supportLoop(n, part)
	}
	f.supportWaits(n, h, "eviction")
	f.support(recording.SourceServer, evicted, "keys",
		"%s evicted during the watch (%.0f per second on average)", counted(evicted, "key"), evicted/n.Seconds())
	if limit > 0 {
		f.support(recording.SourceServer, used/limit, "",
			"used_memory reached %.0f MB of maxmemory %.0f MB", used/1e6, limit/1e6)
		if used < degree.NearlyAll*limit && !sampled {
			f.doubt(recording.SourceServer, used/limit, "", "that is below maxmemory")
			f.weaken(1)
		}
	}
	if ms := n.Growth(series.TotalEvictionExceededTime); ms > 0 {
		f.support(recording.SourceServer, ms, "ms",
			"it was above maxmemory for %.0f ms (total_eviction_exceeded_time)", ms)
	}
	f.FixSteps = evictionFix(n, h.Suspects, used)
	return f
}

// evictionShare estimates the share of evictions in the main thread's work.
func evictionShare(n *facts.Node, evicted float64) (float64, mainthread.Demand) {
	d, ok := mainthread.DemandOf(n)
	if !ok || d.Run <= 0 {
		return 0, d
	}
	return min(1, evicted*freedKeyNs/1e9/n.Seconds()/d.Run), d
}

func evictionFix(n *facts.Node, ss []account.Suspect, used float64) (fix []remedy.Step) {
	if len(ss) > 0 && ss[0].Command == "CONFIG SET" {
		fix = append(fix, change("lower-maxmemory-in-steps", "%s", "Lower maxmemory in small steps: each CONFIG SET "+
			"maxmemory"+caller.FromText(n, ss)+" evicts down to the new limit at once"))
	}
	if v, ok := n.Config("maxmemory-eviction-tenacity"); ok {
		if t, err := strconv.Atoi(v); err == nil && t > defaultTenacity {
			fix = append(fix, remedy.ConfigSet(n, "shorter-evictions", "maxmemory-eviction-tenacity",
				strconv.Itoa(defaultTenacity),
				"One round of eviction then ends after about 0.5 ms; now it may take longer").
				Risking("for some time it may be further above maxmemory"))
		}
	} else if !facts.ServerAtLeast(n, 6, 2) {
		fix = append(fix, remedy.Step{
			ID: "upgrade-server", Kind: remedy.Change, Restart: "the server",
			Text: "Upgrade to 6.2 or newer: there one round of eviction ends after about 0.5 ms",
		})
	}
	return append(fix, remedy.ConfigSet(n, "more-memory", "maxmemory", fmt.Sprintf("%.0f", 2*used),
		"Leave room for new keys, for the hash table to double and for client buffers; or add shards").
		Risking("the host must have that much memory"),
		inApplication("expire-keys", "Set an expiry on all keys, so that they go before memory is full"))
}

// defaultTenacity is the default of maxmemory-eviction-tenacity; more lets one round of eviction take longer.
// Bound: server, evictionTimeLimitUs of evict.c: 50 µs per step up to 10, then 15 % more per step; 100 is no limit.
const defaultTenacity = 10
