package facts

import (
	"strings"

	"slowpath/internal/recording"
)

// IOThreads is what the I/O threads were given and what they took.
type IOThreads struct {
	Configured int     // with the main thread
	CPUs       float64 // that the server may use: by its affinity, or fewer by its quota
	ByQuota    bool    // the quota is the bound
	Run, Wait  float64 // cores, all I/O threads together
	Measured   bool    // seen on the host
}

// Total is what the I/O threads would have used: each that stands in the run queue is one more that the scheduler must
// serve.
func (t IOThreads) Total() float64 { return t.Run + t.Wait }

// IOThreads reads CONFIG and the host's figures of each thread.
func (n *Node) IOThreads() IOThreads {
	t := IOThreads{Configured: n.ConfigInt("io-threads")}
	t.CPUs, _ = n.Host("cpus_allowed").Last()
	for _, l := range n.Cgroup.Levels {
		if l.QuotaUs > 0 && l.PeriodUs > 0 {
			if q := float64(l.QuotaUs) / float64(l.PeriodUs); t.CPUs == 0 || q < t.CPUs {
				t.CPUs, t.ByQuota = q, true
			}
		}
	}
	for _, name := range n.Rec.Names(recording.SourceHost, n.Address, "thread.io_th") {
		switch {
		case strings.HasSuffix(name, ".run_ns"):
			t.Measured = true
			t.Run += Rate(n.Host(name)) / 1e9
		case strings.HasSuffix(name, ".delay_ns"):
			t.Wait += Rate(n.Host(name)) / 1e9
		}
	}
	return t
}
