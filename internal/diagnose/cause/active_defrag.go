package cause

import (
	"fmt"
	"math"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
	"slowpath/internal/source/profile/stacks"
)

// activeDefrag: the main thread moves values to gather free memory, and serves nobody meanwhile.
var activeDefrag = Cause{
	ID:      "active-defrag",
	Class:   ServerStall,
	Changes: []string{"activedefrag", "active-defrag-*"},
	Explain: explainActiveDefrag,
}

// explainActiveDefrag claims by the thread's stacks; where there are few of them, by what the server records.
func explainActiveDefrag(n *facts.Node) *Finding {
	h := mainthread.ClaimOfSuspects(n, func(s account.Suspect) bool { return s.Kind == account.KindDefrag })
	part, inSlices, sampled := inLoop(n, stacks.Defrag)
	if sampled {
		h.Claim = inSlices
	}
	if !h.Matters() || !sampled && mainthread.LoopTimeOf(n).Samples >= hosts.FewSamples {
		return nil
	}
	f := finding(n, h.Claim)
	if sampled {
		f.supportLoop(n, part)
	}
	if len(h.Suspects) > 0 {
		f.supportWaits(n, h, "active defragmentation")
	}
	if ns := n.GrowthNs(series.TotalActiveDefragTime); ns > 0 {
		f.support(recording.SourceServer, ns, "ns", "it took %s of the main thread's time (total_active_defrag_time)",
			format.Brief(int64(ns)))
	}
	f.FixSteps = defragFix(n)
	return f
}

// defragFix: a slice takes the share active-defrag-cycle-max of a tick of the cron, of which there are hz per second.
// Nobody notices one that is shorter than account.Noticed.
func defragFix(n *facts.Node) (fix []remedy.Step) {
	hz, ok := n.Series(series.Hz).Last()
	if !ok || hz <= 0 {
		hz = account.DefaultHz
	}
	tickNs := 1e9 / hz
	share := max(1, math.Floor(100*float64(account.Noticed)/tickNs))
	if now := float64(n.ConfigInt("active-defrag-cycle-max")); now == 0 || now > share {
		why := fmt.Sprintf("Defragment for at most %s of each tick of the cron, %.0f times per second",
			format.Brief(int64(share/100*tickNs)), hz)
		fix = append(fix, remedy.ConfigSet(n, "shorter-defrag-slices", "active-defrag-cycle-max",
			fmt.Sprintf("%.0f", share), why).Risking("memory is defragmented more slowly"))
		if now := float64(n.ConfigInt("active-defrag-cycle-min")); now > share {
			fix = append(fix, remedy.ConfigSet(n, "shorter-least-defrag-slices", "active-defrag-cycle-min", "1",
				"The lower limit is above that: the default"))
		}
	}
	off := remedy.ConfigSet(n, "defrag-off", "activedefrag", "no", "Defragment only when few calls come").
		Risking("fragmented memory stays as it is")
	off.Or = len(fix) > 0
	return append(fix, off)
}
