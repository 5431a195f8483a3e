package mainthread

import (
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// Demand is the demand of the main thread for CPU time, in cores: the share of the time in which it had something to
// do, of the time in which it was not stopped.
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

// DemandOf is the mean over the watch; ok is false where no source has it.
func DemandOf(n *facts.Node) (d Demand, ok bool) {
	if run := n.Series(series.MainRun); len(run) >= 2 {
		throttled := float64(StateNs(n, recording.KindThrottled)) / 1e9 / n.Seconds()
		free := max(1-throttled-float64(StateNs(n, recording.KindFrozen))/1e9/n.Seconds(), 1/(n.Seconds()*1e9))
		wait := max(n.Cores(series.MainDelay)-throttled, 0)
		return Demand{min(n.Cores(series.MainRun)/free, 1), wait / free, recording.SourceHost, true}, true
	}
	cores, source, ok := MainCores(n)
	if !ok {
		return d, false
	}
	d = Demand{Run: cores, Source: source}
	if s := n.Series(series.EventloopDurationSum); len(s) >= 2 {
		d.Measured, d.Wait = true, max(n.Cores(series.EventloopDurationSum)-cores, 0)
	}
	return d, true
}
