package hosts

import (
	"fmt"
	"strconv"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// SoftirqNsPerSegment is the time that a TCP segment in or out takes in softirqs, an upper bound (about 1 µs with a
// network card's offloads, 2 µs on loopback).
// Bound: noted, on loopback, the upper end.
const SoftirqNsPerSegment = 2000

// KsoftirqdPrefix begins the name of the kernel's thread that handles on a CPU what softirqs left (kernel/softirq.c):
// "ksoftirqd/0".
const KsoftirqdPrefix = "ksoftirqd/"

// Softirq is the time that softirqs took of the server's CPU.
type Softirq struct {
	// CPU is the number of the CPU.
	CPU    int
	series recording.Series
	// Ns is the time of softirqs during the watch, in nanoseconds.
	Ns float64
	// OwnNs is the most that the TCP segments of the server's network namespace need, in nanoseconds.
	OwnNs float64
	// OthersNs is the time in nanoseconds that neither the server nor softirqs had the CPU, while it was busy.
	OthersNs float64
}

// Heavy reports whether softirqs had a part of the CPU beyond what the server's own packets need.
func (q Softirq) Heavy(n *facts.Node) bool { return (q.Ns-q.OwnNs)/1e9/n.Seconds() >= degree.Part }

// ShareOfRest is the share of softirqs of the CPU time that the server did not have.
func (q Softirq) ShareOfRest() float64 { return q.Ns / max(q.Ns+q.OthersNs, 1) }

// ThreadName is that of the CPU's thread for softirqs: "ksoftirqd/0".
func (q Softirq) ThreadName() string { return fmt.Sprintf("%s%d", KsoftirqdPrefix, q.CPU) }

// NsWithin is the part in nanoseconds of a wait of the main thread for its CPU in which softirqs had it.
func (q Softirq) NsWithin(s account.Segment) int64 {
	switch {
	case strings.HasPrefix(s.Culprit, q.ThreadName()+"["):
		return s.Ns()
	case s.Culprit == "" || strings.HasPrefix(s.Culprit, "the idle task"):
		return int64(q.ShareOfRest() * float64(s.Ns())) // an idle CPU handles its interrupts before it wakes up
	}
	return int64(q.ShareWithin(s.FromNs, s.ToNs) * float64(s.Ns())) // on top of another task
}

// Share is the share of the CPU that softirqs had during the watch.
func (q Softirq) Share(n *facts.Node) float64 { return q.Ns / 1e9 / n.Seconds() }

// ShareWithin is the share of the CPU that softirqs had in a stretch of time.
func (q Softirq) ShareWithin(from, to int64) float64 {
	for i := 1; i < len(q.series); i++ {
		if a, b := q.series[i-1], q.series[i]; b.TimeNs > from && a.TimeNs < to && b.TimeNs > a.TimeNs {
			return min(1, (b.Value-a.Value)/float64(b.TimeNs-a.TimeNs))
		}
	}
	return 0
}

// MainCPU is the number of the CPU on which the main thread was seen most; ok is false where the host source did not
// see it.
func MainCPU(n *facts.Node) (most int, ok bool) {
	at := n.Series(series.MainCPU)
	on := map[int]int64{}
	for i, p := range at {
		to := n.EndNs
		if i+1 < len(at) {
			to = at[i+1].TimeNs
		}
		on[int(p.Value)] += max(to-p.TimeNs, 1)
	}
	for cpu, ns := range on {
		if ns > on[most] || on[most] == 0 || ns == on[most] && cpu < most {
			most = cpu
		}
	}
	return most, len(at) > 0
}

// SoftirqOf is that of the CPU on which the main thread was seen most; ok is false where the host source did not see
// it.
func SoftirqOf(n *facts.Node) (q Softirq, ok bool) {
	if q.CPU, ok = MainCPU(n); !ok {
		return q, false
	}
	cpu := strconv.Itoa(q.CPU)
	q.series = n.Series(series.CPUSoftirq(cpu))
	q.Ns = q.series.Growth()
	q.OwnNs = SoftirqNsPerSegment * (n.Growth(series.InSegs) + n.Growth(series.OutSegs))
	q.OthersNs = max(0, n.Growth(series.CPUBusy(cpu))-q.Ns-n.Growth(series.MainRun))
	return q, len(q.series) >= 2
}
