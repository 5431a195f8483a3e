package account

import (
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// checkWithHost finds for each suspect whether the host saw the thread at work or stopped for that long within its
// window. SLOWLOG and commandstats measure by the clock: the time of a command that was throttled in its middle is not
// its own.
func checkWithHost(rec *recording.Recording, suspects []Suspect) {
	states := map[string][]hostState{} // by node, ordered by time
	for _, e := range rec.Events {
		if _, is := stateRank[e.Kind]; is && e.Source == recording.SourceHost {
			states[e.Subject] = append(states[e.Subject], newHostState(e))
		}
	}
	for i := range suspects {
		s := &suspects[i]
		if states[s.Node] == nil {
			continue
		}
		ran := longest(states[s.Node], s, func(state string) bool { return state == Busy })
		stopped := longest(states[s.Node], s, func(state string) bool { return state != Busy })
		held := longest(states[s.Node], s, func(state string) bool { return state != Busy && state != RunQueue })
		// A long command that shares its CPU with others may be off it for most of the time, and still be long by its
		// own work.
		s.Busy = ran >= s.DurationNs/2 ||
			ran >= MinSeenBusyNs && ran >= s.DurationNs/degree.Many && held < s.DurationNs/2
		s.Stopped = stopped >= s.DurationNs/2
		if !s.Stopped {
			continue
		}
		mean, calls := meanNs(rec, s)
		switch {
		case calls >= degree.Many && mean*degree.Many < s.DurationNs:
			s.Busy = false // the thread was at work then, but hardly on this
		case calls > 0 && held < s.DurationNs/2 && mean*degree.Several >= s.DurationNs && !ConstantTime(s.Command):
			s.Stopped = false // it always takes about that long
		}
	}
}

// meanNs is what a command takes on average, by commandstats, and how often it was called in the watch.
func meanNs(rec *recording.Recording, s *Suspect) (ns int64, calls float64) {
	stat := series.InCommandstats(s.Command)
	calls = rec.Of(series.CommandCalls(stat), s.Node).Growth()
	time := series.CommandUsec(stat)
	return int64(time.Ns(rec.Of(time, s.Node).Growth() / max(calls, 1))), calls
}

// longest is the longest time that some of the states cover of any span as long as the suspect's duration, within the
// suspect's window. They are ordered by time.
func longest(states []hostState, s *Suspect, of func(state string) bool) (best int64) {
	for i := range states {
		from := max(states[i].FromNs, s.FromNs)
		to := min(from+s.DurationNs, s.ToNs)
		var sum int64
		for j := i; j < len(states) && states[j].FromNs < to; j++ {
			e := &states[j]
			if d := min(to, e.ToNs) - max(from, e.FromNs); d > 0 && of(e.State) {
				sum += int64(float64(d) * e.part())
			}
		}
		best = max(best, sum)
	}
	return best
}
