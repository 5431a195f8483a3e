package facts

import (
	"fmt"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
)

// Bounds of softirqs.
const (
	// softirqShare of the CPU: less than a fifth makes nothing slow that was fast.
	minSoftirqShare = 0.2
	// SegmentNs is what a TCP segment in or out costs in softirqs, an upper bound (about 1 µs with a card's offloads, 2
	// µs on loopback).
	SoftirqNsPerSegment = 2000
)

// Ksoftirqd is the kernel's thread that handles on a CPU what softirqs left (kernel/softirq.c), "ksoftirqd/0".
const KsoftirqdPrefix = "ksoftirqd/"

// Softirq is the time that one CPU spent on them.
type Softirq struct {
	CPU      int
	series   recording.Series
	Ns       float64 // of the watch
	OwnNs    float64 // at most, that the TCP segments of the server's namespace need
	OthersNs float64 // CPU time of that CPU that neither the server nor softirqs had
}

// Heavy reports whether softirqs had a good part of the CPU, beyond what the server's own packets need.
func (q Softirq) Heavy(n *Node) bool { return (q.Ns-q.OwnNs)/1e9/n.Seconds() >= minSoftirqShare }

// Part of what the server did not have of the CPU.
func (q Softirq) ShareOfRest() float64 { return q.Ns / max(q.Ns+q.OthersNs, 1) }

func (q Softirq) ThreadName() string { return fmt.Sprintf("%s%d", KsoftirqdPrefix, q.CPU) }

// Of is the part of a wait of the main thread for its CPU in which softirqs had it.
func (q Softirq) NsWithin(s account.Segment) int64 {
	switch {
	case strings.HasPrefix(s.Culprit, q.ThreadName()+"["):
		return s.Ns()
	case s.Culprit == "" || strings.HasPrefix(s.Culprit, "the idle task"):
		return int64(q.ShareOfRest() * float64(s.Ns())) // an idle CPU handles its interrupts before it wakes up
	}
	return int64(q.ShareWithin(s.FromNs, s.ToNs) * float64(s.Ns())) // on top of another task
}

func (q Softirq) Share(n *Node) float64 { return q.Ns / 1e9 / n.Seconds() }

// share of a stretch of time.
func (q Softirq) ShareWithin(from, to int64) float64 {
	for i := 1; i < len(q.series); i++ {
		if a, b := q.series[i-1], q.series[i]; b.TimeNs > from && a.TimeNs < to && b.TimeNs > a.TimeNs {
			return min(1, (b.Value-a.Value)/float64(b.TimeNs-a.TimeNs))
		}
	}
	return 0
}

// Softirq is that of the CPU on which the main thread was seen most.
func (n *Node) Softirq() (q Softirq, ok bool) {
	at := n.Host("main.cpu")
	if len(at) == 0 {
		return q, false
	}
	on := map[int]int64{}
	for i, p := range at {
		to := n.EndNs
		if i+1 < len(at) {
			to = at[i+1].TimeNs
		}
		on[int(p.Value)] += max(to-p.TimeNs, 1)
	}
	for cpu, ns := range on {
		if ns > on[q.CPU] || on[q.CPU] == 0 || ns == on[q.CPU] && cpu < q.CPU {
			q.CPU = cpu
		}
	}
	name := fmt.Sprintf("cpu.%d.", q.CPU)
	q.series = n.Machine(name + "softirq_ns")
	q.Ns = q.series.Growth()
	q.OwnNs = SoftirqNsPerSegment * (n.Host("net.InSegs").Growth() + n.Host("net.OutSegs").Growth())
	q.OthersNs = max(0, n.Machine(name+"busy_ns").Growth()-q.Ns-n.Host("main.run_ns").Growth())
	return q, len(q.series) >= 2
}
