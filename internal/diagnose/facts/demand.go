package facts

import (
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// Demand is the demand of the main thread for CPU time, in cores: the share of the time in which it had something to
// do.
type Demand struct {
	// Run is the time on a CPU.
	Run float64
	// Wait is the time in the run queue, without what its cgroup was throttled; 0 where only the server was asked.
	Wait float64
	// Source is where it is known from.
	Source string
	// Measured says that it is known from the host's schedstat, or from the event loop's own clock (redis and valkey
	// 7.2 and later).
	Measured bool
}

// Total is the part of the time in which the thread had work.
func (d Demand) Total() float64 { return min(d.Run+d.Wait, 1) }

// Demand is the mean over the watch; ok is false where no source has it.
func (n *Node) Demand() (d Demand, ok bool) {
	if run := n.Series(series.MainRun); len(run) >= 2 {
		wait := n.Cores(series.MainDelay) - float64(n.StateNs(recording.KindThrottled))/1e9/n.Seconds()
		return Demand{n.Cores(series.MainRun), max(wait, 0), recording.SourceHost, true}, true
	}
	cores, source, ok := n.MainCores()
	if !ok {
		return d, false
	}
	d = Demand{Run: cores, Source: source}
	if s := n.Series(series.EventloopDurationSum); len(s) >= 2 {
		d.Measured, d.Wait = true, max(n.Cores(series.EventloopDurationSum)-cores, 0)
	}
	return d, true
}
