package cause

import (
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
)

// supportWait says how many goroutines or threads waited.
func (f *Finding) supportWait(w facts.ThreadWait) {
	f.support(recording.SourceProfile, float64(w.Count), w.App.ThreadNoun(),
		"%s: %d of %d %s in calls of %s wait for %s (median of %d readings, %d of them with such waits)",
		w.App.DisplayName(), w.Count,
		w.Calls, w.App.ThreadNoun(), w.Meaning.Library, w.Meaning.What, len(w.App.Snapshots), w.Snapshots)
}

// supportDelay says how long goroutines waited for the matching locks, where the program counts it.
func (f *Finding) supportDelay(a *facts.Application, kind, what string, match func(stacks.Meaning) bool) {
	var ns, all int64
	for _, d := range a.Delays[kind] {
		all += d.Ns
		if match(d.Meaning) {
			ns += d.Ns
		}
	}
	if ns > 0 {
		f.support(recording.SourceProfile, float64(ns), "ns",
			"%s: %s of its mutex delay during the watch was %s (%.1f %%; sums over all goroutines)", a.DisplayName(),
			format.Brief(ns), what, 100*float64(ns)/float64(all))
	}
}

// minPoolWaitShare of the goroutines or threads that are in calls wait for the pool; fewer is a pool that is short of a
// connection now and then.
// Bound: guess.
const minPoolWaitShare = 0.2
