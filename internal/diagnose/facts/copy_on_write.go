package facts

import (
	"slowpath/internal/recording"
)

const (
	// CopyNs is what a first write to a page of 4 kB takes where nothing tells it: the fault, the copy and the cache
	// misses after it. Measured 3.6-4.5 µs in a virtual machine on an AMD EPYC (the main thread's CPU time in the
	// kernel against its faults, in the lab's incident of this name).
	DefaultFaultNs = 3000
	maxFaultNs     = 20_000 // of a page of 4 kB, anywhere
	// copyShare of the main thread's CPU time while a child lives, from which on the copies are felt.
	minCopyShare = 0.15
	// aroundNs is how far apart the looks of two sources may be: INFO and the host's files are not read at the same
	// time.
	pollToleranceNs = int64(200e6)
	// copyTimes as many faults with a child as without: growing memory faults as well.
	minFaultRatio = 3
)

// Copies are the faults of the main thread.
type PageCopies struct {
	WithChildSeconds, WithoutChildSeconds float64 // seconds
	faults, faultsAlone                   float64 // in these
	runNs                                 float64 // CPU time while a child lived
	FaultNs                               float64 // of one fault
	Measured                              bool    // eachNs is of this recording
	spans                                 []copySpan
}

// copyStep is a stretch in which a child lived, with the part of the main thread's CPU time that went into copies.
type copySpan struct {
	Span
	share float64
}

func (c PageCopies) Share() float64 { return min(1, c.faults*c.FaultNs/max(c.runNs, 1)) }

// PerSecond is how often the main thread faulted while a child lived, and without one.
func (c PageCopies) PerSecond() (with, alone float64) {
	return c.faults / max(c.WithChildSeconds, 1e-9), c.faultsAlone / max(c.WithoutChildSeconds, 1e-9)
}

// Felt reports whether copies took a good part of the main thread's time: not where it faults as often without a child,
// since its memory grows then.
func (c PageCopies) Matters() bool {
	with, alone := c.PerSecond()
	return c.WithChildSeconds > 0 && c.Share() >= minCopyShare && (c.WithoutChildSeconds == 0 ||
		with >= minFaultRatio*alone)
}

func (n *Node) PageCopies() (c PageCopies) {
	faults, run := n.Host("main.minflt"), n.Host("main.run_ns")
	c.FaultNs = DefaultFaultNs
	if beyond, ok := n.excessKernelNs(); ok && faults.Growth() > 0 {
		c.FaultNs, c.Measured = min(beyond/faults.Growth(), maxFaultNs), true
	}
	for i := 1; i < len(faults); i++ {
		from, to := faults[i-1].TimeNs, faults[i].TimeNs
		grown, seconds := faults[i].Value-faults[i-1].Value, float64(to-from)/1e9
		if !n.childLived(from, to) {
			c.WithoutChildSeconds += seconds
			c.faultsAlone += grown
			continue
		}
		r0, _ := run.At(from)
		r1, _ := run.At(to)
		c.WithChildSeconds += seconds
		c.faults += grown
		c.runNs += r1 - r0
		c.spans = append(c.spans, copySpan{Span{from, to}, min(1, grown*c.FaultNs/max(r1-r0, 1))})
	}
	return c
}

// childLived reports whether a child saved or rewrote at the begin or the end of a stretch.
func (n *Node) childLived(from, to int64) bool {
	for _, name := range []string{"rdb_bgsave_in_progress", "aof_rewrite_in_progress"} {
		s := n.Info(name)
		for at := from; at <= to+pollToleranceNs; at += pollToleranceNs {
			if v, _ := s.At(at); v > 0 {
				return true
			}
		}
	}
	for _, e := range n.Events(recording.SourceServer, recording.KindFork) {
		if window := recording.DetailOf[recording.ForkDetail](e).WindowNs; e.TimeNs < to && e.TimeNs+max(window,
			e.DurationNs) > from {
			return true
		}
	}
	if len(n.Info("rdb_bgsave_in_progress")) > 0 {
		return false // INFO is asked more often than children are counted
	}
	v, _ := n.Host("children.count").At(to)
	return v > 0
}

// In is the part of a stretch of the main thread's work that went into copies, in nanoseconds.
func (c PageCopies) NsWithin(from, to int64) (ns int64) {
	for _, s := range c.spans {
		if w := min(to, s.ToNs) - max(from, s.FromNs); w > 0 {
			ns += int64(s.share * float64(w))
		}
	}
	return ns
}
