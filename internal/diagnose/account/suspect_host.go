package account

import (
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// hostTimes are the times in which the host source saw the main thread of a node on the CPU (busy), and kept from it
// (stopped). Of the latter, held are those in which it was not in the run queue.
type hostTimes struct{ busy, stopped, held []hostState }

func readHostTimes(rec *recording.Recording) map[string]*hostTimes {
	out := map[string]*hostTimes{} // by node
	for _, e := range rec.Events {
		if e.Source != recording.SourceHost {
			continue
		}
		at := out[e.Subject]
		if at == nil {
			at = &hostTimes{}
			out[e.Subject] = at
		}
		switch s := newHostState(e); e.Kind {
		case recording.KindBusy:
			at.busy = append(at.busy, s)
		case recording.KindThrottled, recording.KindFrozen, recording.KindBlocked:
			at.stopped, at.held = append(at.stopped, s), append(at.held, s)
		case recording.KindRunQueue:
			at.stopped = append(at.stopped, s)
		}
	}
	return out
}

// checkWithHost finds for each suspect whether the host saw the thread at work or stopped for that long within its
// window. SLOWLOG and commandstats measure by the clock: the time of a command that was throttled in its middle is not
// its own.
func checkWithHost(rec *recording.Recording, suspects []Suspect) {
	times := readHostTimes(rec)
	for i := range suspects {
		s := &suspects[i]
		at := times[s.Node]
		if at == nil {
			continue
		}
		ran, held := longest(at.busy, s), longest(at.held, s)
		// A long command that shares its CPU with others may be off it for most of the time, and still be long by its
		// own work.
		s.Busy = ran >= s.DurationNs/2 ||
			ran >= MinSeenBusyNs && ran >= s.DurationNs/degree.Many && held < s.DurationNs/2
		s.Stopped = longest(at.stopped, s) >= s.DurationNs/2
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

// longest is the longest time that the states cover of any span as long as the suspect's duration, within the suspect's
// window. They are ordered by time.
func longest(states []hostState, s *Suspect) int64 {
	var best int64
	for i := range states {
		from := max(states[i].FromNs, s.FromNs)
		to := min(from+s.DurationNs, s.ToNs)
		var sum int64
		for j := i; j < len(states) && states[j].FromNs < to; j++ {
			e := &states[j]
			if d := min(to, e.ToNs) - max(from, e.FromNs); d > 0 {
				sum += int64(float64(d) * e.part())
			}
		}
		best = max(best, sum)
	}
	return best
}
