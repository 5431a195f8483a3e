package cause

import (
	"fmt"
	"math"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
	"slowpath/internal/source/profile/stacks"
)

// activeExpireCycle: many keys expire at the same time. The cycle that removes them takes up to a quarter of the main
// thread, in slices of 25 ms at hz 10 (expire.c).
var activeExpireCycle = Cause{
	ID:      "active-expire-cycle",
	Class:   ServerStall,
	Changes: []string{"active-expire-effort", "hz", "dynamic-hz"},
	Explain: explainExpire,
}

func explainExpire(n *facts.Node) *Finding {
	h := mainthread.ClaimOfSuspects(n, func(s account.Suspect) bool { return s.Kind == account.KindExpire })
	share := series.ExpireCycleCPU.Seconds(n.Growth(series.ExpireCycleCPU)) / n.Seconds()
	caps := n.Growth(series.ExpiredTimeCapReachedCount)
	part, seen, sampled := inLoop(n, stacks.Expire)
	h.Claim = add(h.Claim, seen)
	if !h.Matters() {
		return nil
	}
	f := finding(n, h.Claim)
	if sampled {
		f.supportLoop(n, part)
	}
	f.supportWaits(n, h, "the expire cycle")
	keys, fields := n.Growth(series.ExpiredKeys), n.Growth(series.ExpiredSubkeys)+n.Growth(series.ExpiredFields)
	expired := keys + fields
	what := counted(keys, "key")
	if fields > 0 {
		what += " and " + counted(fields, "hash field")
	}
	if fields > keys {
		f.Title = "Many hash fields expire at once: removing them takes the event loop in long slices"
	}
	f.support(recording.SourceServer, expired, "keys",
		"%s expired during the watch (%.0f per second on average)", what, expired/n.Seconds())
	if share > 0 {
		f.support(recording.SourceServer, share, "",
			"the expire cycle took %.0f ms, %.1f %% of the time (expire_cycle_cpu_milliseconds)", share*n.Seconds()*1e3,
			share*100)
	}
	if caps > 0 {
		f.support(recording.SourceServer, caps, "cycles",
			"it hit its time limit %s (expired_time_cap_reached_count)", facts.TimesText(int(caps)))
	} else if !sampled {
		f.doubt(recording.SourceServer, 0, "cycles", "it never hit its time limit")
		f.weaken(1)
	}
	if expired*freedKeyNs < degree.Part*float64(h.MaxNs) && !sampled {
		f.doubt(recording.SourceServer, expired, "keys", "so few do not explain long cycles")
		f.weaken(2)
	}
	if stale, ok := n.Series(series.ExpiredStalePerc).Max(); ok && stale >= 1 {
		f.support(recording.SourceServer, stale, "%",
			"up to %.0f %% of the keys with a TTL had expired but were not removed yet (expired_stale_perc)", stale)
	}
	f.FixSteps = expireFix(n, share*n.Seconds(), expired)
	return f
}

// expireFix: busy is how long the cycle took in seconds, 0 where the server does not count it.
func expireFix(n *facts.Node, busy, expired float64) []remedy.Step {
	if busy == 0 {
		busy = expired * freedKeyNs / 1e9
	}
	spread := math.Ceil(busy*100/60) * 60 // then it takes 1 % of the time
	fix := []remedy.Step{{
		ID: "spread-expiry", Kind: remedy.Change, Restart: "the application", To: fmt.Sprintf("%.0f", spread),
		Text: fmt.Sprintf("Add a random time to each expiry, up to %.0f s: as many keys then expire in slices of "+
			"about 1 ms. One EXPIREAT for all of them, or one TTL for a bulk load, makes them expire together", spread),
		Risk: "some keys live that much longer",
	}}
	if v, ok := n.Config("active-expire-effort"); ok && v != "1" {
		fix = append(fix, remedy.ConfigSet(n, "less-expire-effort", "active-expire-effort", "1",
			"Let the cycle take a quarter of the time at most, the default"))
	}
	if hz, ok := n.Series(series.Hz).Last(); ok && hz <= account.DefaultHz && hz > 0 {
		fix = append(fix, remedy.ConfigSet(n, "shorter-expire-slices", "hz", "50",
			fmt.Sprintf("Slices of up to %.0f ms instead of %.0f ms, until the keys are spread", 250/50.0, 250/hz)).
			Risking("it takes a little more CPU time when idle"))
	}
	return fix
}
