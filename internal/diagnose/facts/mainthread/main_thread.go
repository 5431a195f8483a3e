package mainthread

import (
	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// HostWatched reports whether the server's main thread was watched through the files of its host.
func HostWatched(n *facts.Node) bool { return len(n.Series(series.MainRun)) > 0 }

// Exact is what the tap saw of the server's main thread in a state, segment by segment; nil where it did not
// see the thread.
func Exact(n *facts.Node, state string) []account.Segment {
	var out []account.Segment
	for _, s := range n.Ledger.Exact(n.Address) {
		if s.State == state {
			out = append(out, s)
		}
	}
	return out
}

// SeenExactly reports whether the tap saw the server's main thread.
func SeenExactly(n *facts.Node) bool { return n.Ledger.Exact(n.Address) != nil }

// StateSource is the best source that saw the states of the server's main thread.
func StateSource(n *facts.Node) string {
	switch {
	case SeenExactly(n):
		return recording.SourceTap
	case HostWatched(n):
		return recording.SourceHost
	}
	return recording.SourceServer
}

// StateNs is the time in nanoseconds that the host source saw the main thread in a state during the watch, whether
// calls were slow or not.
func StateNs(n *facts.Node, kind string) int64 {
	var ns int64
	for _, e := range n.Events(recording.SourceHost, kind) {
		share := recording.DetailOf[recording.ThreadDetail](e).Share
		if share <= 0 || share > 1 {
			share = 1
		}
		ns += int64(float64(e.DurationNs) * share)
	}
	return ns
}

// WaitSum adds up waits of a thread.
type WaitSum struct {
	// Count is the number of waits.
	Count int
	// Ns is the time of all in nanoseconds.
	Ns int64
	// MaxNs is the longest in nanoseconds.
	MaxNs int64
}

// SumWaits adds up segments.
func SumWaits(segs []account.Segment) (w WaitSum) {
	for _, s := range segs {
		w.Count++
		w.Ns += s.Ns()
		w.MaxNs = max(w.MaxNs, s.Ns())
	}
	return w
}

// MainCores is the CPU time that the main thread used per second, 0..1: by the host's schedstat where it was watched,
// else by INFO (used_cpu_*_main_thread since 6.2, before that of the whole process). ok is false where neither is
// known.
func MainCores(n *facts.Node) (cores float64, source string, ok bool) {
	if s := n.Series(series.MainRun); len(s) >= 2 {
		return n.Cores(series.MainRun), recording.SourceHost, true
	}
	for _, f := range [][2]series.Name{
		{series.UsedCPUUserMainThread, series.UsedCPUSysMainThread},
		{series.UsedCPUUser, series.UsedCPUSys},
	} {
		u, s := n.Series(f[0]), n.Series(f[1])
		if len(u) >= 2 && len(s) >= 2 {
			return min(facts.Rate(u)+facts.Rate(s), 1), recording.SourceServer, true
		}
	}
	return 0, "", false
}

// PolledCPUNs is the CPU time in nanoseconds of a thread that uses some cores, between the first and the last poll of
// INFO.
func PolledCPUNs(n *facts.Node, cores float64) int64 {
	polls := n.Series(series.UsedCPUUser)
	if len(polls) < 2 {
		polls = n.Series(series.UsedCPUUserMainThread)
	}
	if len(polls) < 2 {
		return int64(cores * n.Seconds() * 1e9)
	}
	return int64(cores * float64(polls[len(polls)-1].TimeNs-polls[0].TimeNs))
}
