package account

import (
	"strings"

	"slowpath/internal/recording"
)

// stretches are the times in which the host source saw the main thread of a node on the CPU, ready to run, and kept
// from it in other ways; stopped are both of the latter.
type stretches struct{ busy, stopped, held []recording.Event }

// witness finds for each suspect whether the host saw the thread at work or stopped for that long within its window.
// SLOWLOG and commandstats measure by the clock: the time of a command that was throttled in its middle is not its own.
func witness(rec *recording.Recording, ss []Suspect) {
	seen := map[string]*stretches{}
	for _, e := range rec.Events {
		if e.Source != recording.SourceHost {
			continue
		}
		at := seen[e.Subject]
		if at == nil {
			at = &stretches{}
			seen[e.Subject] = at
		}
		switch e.Kind {
		case recording.KindBusy:
			at.busy = append(at.busy, e)
		case recording.KindThrottled, recording.KindFrozen, recording.KindBlocked:
			at.stopped, at.held = append(at.stopped, e), append(at.held, e)
		case recording.KindRunQueue:
			at.stopped = append(at.stopped, e)
		}
	}
	for i, s := range ss {
		if at := seen[s.Node]; at != nil {
			ran, held := most(at.busy, s), most(at.held, s)
			// A long command that shares its CPU with others may be off it for most of the time, and still be long by
			// its own work.
			ss[i].Busy = ran >= s.DurationNs/2 || ran >= SeenBusyNs && ran >= s.DurationNs/8 && held < s.DurationNs/2
			ss[i].Stopped = most(at.stopped, s) >= s.DurationNs/2
			if mean, calls := usual(rec, s); ss[i].Stopped && calls > 0 {
				switch {
				case calls >= fastCalls && mean*fastTimes < s.DurationNs:
					ss[i].Busy = false // the thread was at work then, but hardly on this
				case held < s.DurationNs/2 && mean >= s.DurationNs/4 && !ConstantTime(s.Command):
					ss[i].Stopped = false // it always takes about that long
				}
			}
		}
	}
}

// usual is what a command takes on average, by commandstats, and how often it was asked in the watch.
func usual(rec *recording.Recording, s Suspect) (meanNs int64, calls float64) {
	name := "cmdstat_" + strings.ToLower(strings.ReplaceAll(s.Command, " ", "|"))
	calls = rec.Series(recording.SourceServer, s.Node, name+".calls").Growth()
	usec := rec.Series(recording.SourceServer, s.Node, name+".usec").Growth()
	return int64(usec / max(calls, 1) * 1000), calls
}

// A command that is asked fastCalls times in a watch, and takes less than a part in fastTimes of its time in SLOWLOG on
// average.
const (
	fastCalls = 100
	fastTimes = 20
)

// most is the longest time that the stretches cover of any span as long as the suspect's duration, within the suspect's
// window.
func most(es []recording.Event, s Suspect) int64 {
	var best int64
	for i, first := range es {
		from := max(first.TimeNs, s.FromNs)
		to := min(from+s.DurationNs, s.ToNs)
		var sum int64
		for _, e := range es[i:] {
			if e.TimeNs >= to {
				break
			}
			if d := min(to, e.TimeNs+e.DurationNs) - max(from, e.TimeNs); d > 0 {
				sum += int64(float64(d) * share(e))
			}
		}
		best = max(best, sum)
	}
	return best
}

func share(e recording.Event) float64 {
	if s := recording.DetailOf[recording.ThreadDetail](e).Share; s > 0 && s < 1 {
		return s
	}
	return 1
}

// Holds reports whether o can have run inside of s, and been nearly all of it: a command in a script or a transaction.
// The server counts and logs both.
func (s Suspect) Holds(o Suspect) bool {
	return o.FromNs < s.ToNs && o.ToNs > s.FromNs && o.DurationNs <= s.DurationNs && o.DurationNs*5 >= s.DurationNs*4 &&
		(s.Client == "" || o.Client == "" || s.Client == o.Client)
}
