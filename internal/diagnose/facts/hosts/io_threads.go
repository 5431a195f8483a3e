package hosts

import (
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// IOThreads is how many I/O threads the server has and what CPU time they demand.
type IOThreads struct {
	// Configured is io-threads, the main thread included.
	Configured int
	// CPUs is how many the server may use: by its affinity, or fewer by its quota.
	CPUs float64
	// ByQuota says that the quota is the bound.
	ByQuota bool
	// Run is the time on a CPU in cores, all I/O threads together.
	Run float64
	// Wait is the time in the run queue in cores, all I/O threads together.
	Wait float64
	// Measured says that the host source saw the threads.
	Measured bool
}

// Total is what the I/O threads would have used: one in the run queue is one more that the scheduler must serve.
func (t IOThreads) Total() float64 { return t.Run + t.Wait }

// IOThreadsOf are read from CONFIG and from the host's counters of each thread.
func IOThreadsOf(n *facts.Node) IOThreads {
	t := IOThreads{Configured: n.ConfigInt("io-threads")}
	t.CPUs, _ = n.Series(series.CPUsAllowed).Last()
	for _, l := range CgroupOf(n).Levels {
		if l.QuotaUs > 0 && l.PeriodUs > 0 {
			if q := float64(l.QuotaUs) / float64(l.PeriodUs); t.CPUs == 0 || q < t.CPUs {
				t.CPUs, t.ByQuota = q, true
			}
		}
	}
	for _, name := range n.Rec.Names(recording.SourceHost, n.Address, series.ThreadPrefix+"io_th") {
		if thread, ok := strings.CutSuffix(strings.TrimPrefix(name, series.ThreadPrefix), ".run_ns"); ok {
			t.Measured = true
			t.Run += n.Cores(series.ThreadRun(thread))
			t.Wait += n.Cores(series.ThreadDelay(thread))
		}
	}
	return t
}
