package hosts

import (
	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// socketCallNs is the CPU time in the kernel of a read or a write with its share of epoll, as an upper bound. Measured
// for a GET: 10.5 µs on 7.0.15 over loopback in a virtual machine on an AMD EPYC (used_cpu_sys_main_thread against
// total_reads_processed).
// Bound: noted, on 7.0.15: a GET has two of them and took 10.5 µs.
const socketCallNs = 7_000

// excessKernelNs is the CPU time in nanoseconds that the main thread spent in the kernel beyond what its sockets and
// forks need: page faults, and making room for pages. ok is false where the server does not report it (before 6.2).
func excessKernelNs(n *facts.Node) (ns float64, ok bool) {
	sys := n.Series(series.UsedCPUSysMainThread)
	reads, writes := n.Series(series.TotalReadsProcessed), n.Series(series.TotalWritesProcessed)
	if len(sys) < 2 || len(reads) < 2 {
		return 0, false
	}
	ns = n.GrowthNs(series.UsedCPUSysMainThread) - socketCallNs*(reads.Growth()+writes.Growth()) -
		float64(account.BulkNs(n.Growth(series.TotalNetInputBytes)+n.Growth(series.TotalNetOutputBytes)))
	for _, e := range n.Events(recording.SourceServer, recording.KindFork) {
		ns -= float64(e.DurationNs)
	}
	return max(ns, 0), true
}

// ExcessKernelShare is that time as a share of the main thread's CPU time.
func ExcessKernelShare(n *facts.Node) float64 {
	beyond, ok := excessKernelNs(n)
	if !ok {
		return 0
	}
	all := n.Growth(series.UsedCPUSysMainThread) + n.Growth(series.UsedCPUUserMainThread)
	return min(1, beyond/1e9/max(all, 1e-9))
}
