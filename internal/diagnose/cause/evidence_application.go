package cause

import (
	"fmt"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/source/profile/stacks"
)

// supportWait says how many waited.
func (f *Finding) supportWait(w facts.ThreadWait) {
	f.support(recording.SourceProfile, fmt.Sprintf("%s: %d of %d %s that are in calls of %s wait for %s (median of "+
		"%d readings, %d of which have some)", w.App.DisplayName(), w.Count, w.Calls, w.App.ThreadNoun(),
		w.Meaning.Library, w.Meaning.What, len(w.App.Snapshots), w.Snapshots), float64(w.Count), w.App.ThreadNoun())
}

// supportDelay says how long goroutines were held up by the locks that match, where the program counts it.
func (f *Finding) supportDelay(a *facts.Application, kind, what string, match func(stacks.Meaning) bool) {
	var ns, all int64
	for _, d := range a.Delays[kind] {
		all += d.Ns
		if match(d.Meaning) {
			ns += d.Ns
		}
	}
	if ns > 0 {
		f.support(recording.SourceProfile, fmt.Sprintf("%s: %s of its delay at mutexes in the watch was %s (%.1f %%; "+
			"sums over all goroutines)", a.DisplayName(), facts.Dur(ns), what, 100*float64(ns)/float64(all)),
			float64(ns),
			"ns")
	}
}

// minPoolWaitShare of the goroutines or threads that are in calls wait for the pool; fewer is a pool that is short of a
// connection now and then.
const minPoolWaitShare = 0.2
