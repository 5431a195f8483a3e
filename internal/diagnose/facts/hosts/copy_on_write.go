package hosts

import (
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

const (
	// DefaultFaultNs is what the first write to a page of 4 kB takes in nanoseconds, where no recording shows it: the
	// fault, the copy and the cache misses after it. Measured 3.6-4.5 µs in a virtual machine on an AMD EPYC (the main
	// thread's CPU time in the kernel against its faults, in the lab's scenario cow-faults-after-fork).
	// Bound: measured, slowpath doctor on the recording cow-faults-after-fork of the corpus: "3.36 µs of kernel time
	// each".
	DefaultFaultNs = 3000
	// pollToleranceNs is how far apart the polls of two sources may be: INFO and the host's files are not read at the
	// same time.
	// Bound: slowpath, the sources poll at different times of a second.
	pollToleranceNs = int64(200e6)
)

// PageCopies are the page faults of the main thread, which copy pages while a child of a fork lives.
type PageCopies struct {
	// WithChildSeconds is the time in which a child lived.
	WithChildSeconds float64
	// WithoutChildSeconds is the time in which none did.
	WithoutChildSeconds float64
	// faults with a child
	faults float64
	// faults without a child
	faultsAlone float64
	// CPU time while a child lived
	runNs float64
	// FaultNs is the time of one fault in nanoseconds.
	FaultNs float64
	// Measured says that FaultNs is computed from this recording.
	Measured bool
	spans    []copySpan
}

// copySpan is a stretch in which a child lived, with the share of the main thread's CPU time that copies took.
type copySpan struct {
	facts.Span
	share float64
}

// Share is the share of the main thread's CPU time that copies took while a child lived.
func (c PageCopies) Share() float64 { return min(1, c.faults*c.FaultNs/max(c.runNs, 1)) }

// PerSecond is how often the main thread faulted while a child lived, and without one.
func (c PageCopies) PerSecond() (with, alone float64) {
	return c.faults / max(c.WithChildSeconds, 1e-9), c.faultsAlone / max(c.WithoutChildSeconds, 1e-9)
}

// Matters reports whether copies took a part of the main thread's time, and it faults much less without a child: else
// its memory grows.
func (c PageCopies) Matters() bool {
	with, alone := c.PerSecond()
	return c.WithChildSeconds > 0 && c.Share() >= degree.Part && (c.WithoutChildSeconds == 0 ||
		with >= degree.Several*alone)
}

// PageCopiesOf are those of the main thread during the watch.
func PageCopiesOf(n *facts.Node) (c PageCopies) {
	faults, run := n.Series(series.MainMinorFaults), n.Series(series.MainRun)
	c.FaultNs = DefaultFaultNs
	if beyond, ok := excessKernelNs(n); ok && faults.Growth() > 0 {
		c.FaultNs, c.Measured = min(beyond/faults.Growth(), degree.Several*DefaultFaultNs), true // more is not theirs
	}
	for i := 1; i < len(faults); i++ {
		from, to := faults[i-1].TimeNs, faults[i].TimeNs
		grown, seconds := faults[i].Value-faults[i-1].Value, float64(to-from)/1e9
		if !childLived(n, from, to) {
			c.WithoutChildSeconds += seconds
			c.faultsAlone += grown
			continue
		}
		r0, _ := run.At(from)
		r1, _ := run.At(to)
		c.WithChildSeconds += seconds
		c.faults += grown
		c.runNs += r1 - r0
		c.spans = append(c.spans, copySpan{facts.Span{FromNs: from, ToNs: to}, min(1, grown*c.FaultNs/max(r1-r0, 1))})
	}
	return c
}

// childLived reports whether a child saved or rewrote at the begin or the end of a stretch.
func childLived(n *facts.Node, from, to int64) bool {
	for _, of := range []series.Name{series.RDBBgsaveInProgress, series.AOFRewriteInProgress} {
		s := n.Series(of)
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
	if len(n.Series(series.RDBBgsaveInProgress)) > 0 {
		return false // INFO is asked more often than children are counted
	}
	v, _ := n.Series(series.Children).At(to)
	return v > 0
}

// NsWithin is the part of a stretch of the main thread's work that copies took, in nanoseconds.
func (c PageCopies) NsWithin(from, to int64) (ns int64) {
	for _, s := range c.spans {
		if w := min(to, s.ToNs) - max(from, s.FromNs); w > 0 {
			ns += int64(s.share * float64(w))
		}
	}
	return ns
}
