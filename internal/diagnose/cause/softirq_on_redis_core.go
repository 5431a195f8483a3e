package cause

import (
	"fmt"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
)

// softirqOnRedisCore: the kernel handles the packets of a network card on the CPU of the main thread. Softirqs go
// before every process; what they leave goes to ksoftirqd, which shares the CPU with it. Catalogue F7.
var softirqOnRedisCore = Cause{
	ID:    "softirq-on-redis-core",
	Title: "Network interrupts are handled on the CPU of the server's main thread, and take it away from it",
	Layer: "network",
	Needs: Needs{
		T0: "nothing",
		T1: "time in softirqs on the CPU of the main thread, beyond what its own packets need",
		T2: "slow calls that waited while ksoftirqd had that CPU",
	},
	Explain: explainSoftirq,
}

// Bounds of softirqs.
const (
	// softirqShare of the CPU: less than a fifth makes nothing slow that was fast.
	softirqShare = 0.2
	// segmentNs is what a TCP segment in or out costs in softirqs, an upper bound (about 1 µs with a card's offloads, 2
	// µs on loopback).
	segmentNs = 2000
)

// ksoftirqd is the kernel's thread that handles on a CPU what softirqs left (kernel/softirq.c), "ksoftirqd/0".
const ksoftirqd = "ksoftirqd/"

// Softirq is the time that one CPU spent on them.
type Softirq struct {
	cpu     int
	series  recording.Series
	ns      float64 // of the watch
	ownNs   float64 // at most, that the TCP segments of the server's namespace need
	othersN float64 // CPU time of that CPU that neither the server nor softirqs had
}

// heavy reports whether softirqs had a good part of the CPU, beyond what the server's own packets need.
func (q Softirq) heavy(n *Node) bool { return (q.ns-q.ownNs)/1e9/n.Seconds() >= softirqShare }

// part of what the server did not have of the CPU.
func (q Softirq) part() float64 { return q.ns / max(q.ns+q.othersN, 1) }

func (q Softirq) daemon() string { return fmt.Sprintf("%s%d", ksoftirqd, q.cpu) }

// of is the part of a wait of the main thread for its CPU in which softirqs had it.
func (q Softirq) of(s account.Segment) int64 {
	switch {
	case strings.HasPrefix(s.Culprit, q.daemon()+"["):
		return s.Ns()
	case s.Culprit == "" || strings.HasPrefix(s.Culprit, "the idle task"):
		return int64(q.part() * float64(s.Ns())) // an idle CPU handles its interrupts before it wakes up
	}
	return int64(q.within(s.FromNs, s.ToNs) * float64(s.Ns())) // on top of another task
}

func (q Softirq) share(n *Node) float64 { return q.ns / 1e9 / n.Seconds() }

// share of a stretch of time.
func (q Softirq) within(from, to int64) float64 {
	for i := 1; i < len(q.series); i++ {
		if a, b := q.series[i-1], q.series[i]; b.TimeNs > from && a.TimeNs < to && b.TimeNs > a.TimeNs {
			return min(1, (b.Value-a.Value)/float64(b.TimeNs-a.TimeNs))
		}
	}
	return 0
}

// softirq is that of the CPU on which the main thread was seen most.
func (n *Node) softirq() (q Softirq, ok bool) {
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
		if ns > on[q.cpu] || on[q.cpu] == 0 || ns == on[q.cpu] && cpu < q.cpu {
			q.cpu = cpu
		}
	}
	name := fmt.Sprintf("cpu.%d.", q.cpu)
	q.series = n.Machine(name + "softirq_ns")
	q.ns = q.series.Growth()
	q.ownNs = segmentNs * (n.Host("net.InSegs").Growth() + n.Host("net.OutSegs").Growth())
	q.othersN = max(0, n.Machine(name+"busy_ns").Growth()-q.ns-n.Host("main.run_ns").Growth())
	return q, len(q.series) >= 2
}

func explainSoftirq(n *Node) *Finding {
	q, ok := n.softirq()
	if !ok || !q.heavy(n) {
		return nil
	}
	// Of the time that others had the CPU while the main thread was ready to run, softirqs had their part.
	part := q.part()
	cl := n.claimOf(func(a account.Account) (ns int64) {
		for _, s := range a.Segments {
			switch {
			case s.Actor != account.Server:
			case s.State == account.RunQueue:
				ns += q.of(s)
			case s.State == account.Busy, s.State == account.Exec:
				ns += int64(q.within(s.FromNs, s.ToNs) * float64(s.Ns())) // in the middle of its own work
			}
		}
		return ns
	})
	if !cl.matters() {
		return nil
	}
	f := n.finding(cl, 0.9)
	f.support(recording.SourceHost, fmt.Sprintf("CPU %d, on which the main thread runs, spent %.0f %% of the time in "+
		"softirqs (/proc/stat); the server itself used %.0f %% of it", q.cpu, 100*q.share(n),
		n.Host("main.run_ns").Growth()/1e7/n.Seconds()), q.share(n), "of the time")
	f.support(recording.SourceHost, fmt.Sprintf("the server's own packets need %.0f %% at most (%.0f TCP segments "+
		"per second in its namespace)", q.ownNs/1e7/n.Seconds(), q.ownNs/segmentNs/n.Seconds()), q.ownNs, "ns")
	waits := n.Claim(func(_ account.Account, s account.Segment) bool {
		return s.Actor == account.Server && s.State == account.RunQueue && strings.HasPrefix(s.Culprit, q.daemon()+"[")
	})
	if waits.Calls > 0 {
		f.Confidence = 0.97
		f.support(recording.SourceTap, fmt.Sprintf("%d of %d slow calls waited while %s had the CPU, up to %s in one "+
			"call", waits.Calls, len(n.Ledger.Slow), q.daemon(), dur(waits.MaxNs)), float64(waits.Calls), "calls")
	}
	f.supportQuiet(n, q)
	if part < 0.5 {
		f.Confidence *= part * 2
		f.doubt(recording.SourceHost, fmt.Sprintf("other processes used %.0f %% of that CPU as well",
			q.othersN/1e7/n.Seconds()), q.othersN, "ns")
	}
	f.Fix = []string{
		fmt.Sprintf("Move the card's interrupts to another CPU: grep -E 'eth|ens|virtio|mlx' /proc/interrupts, then "+
			"echo OTHER_CPU > /proc/irq/NUMBER/smp_affinity_list (stop irqbalance, or exclude CPU %d from it by "+
			"IRQBALANCE_BANNED_CPULIST)", q.cpu),
		"Where the card has one queue, spread the handling: echo MASK_OF_OTHER_CPUS > " +
			"/sys/class/net/DEV/queues/rx-0/rps_cpus",
		fmt.Sprintf("Or keep the server off CPU %d: taskset -acp OTHER_CPUS PID, or server_cpulist in its "+
			"configuration (redis >= 6.0, valkey)", q.cpu),
	}
	f.See = []string{
		"https://docs.kernel.org/networking/scaling.html",
		"https://docs.kernel.org/core-api/irq/irq-affinity.html",
	}
	return f
}

// supportQuiet compares with the other CPUs.
func (f *Finding) supportQuiet(n *Node, q Softirq) {
	cpus := last(n.Machine("cpu.count"))
	all := n.Machine("cpu.softirq_ns").Growth()
	if cpus < 2 || all <= 0 {
		return
	}
	others := max(all-q.ns, 0) / 1e7 / n.Seconds() / (cpus - 1)
	f.support(recording.SourceHost, fmt.Sprintf("the other %.0f CPUs spent %.0f %% on them on average", cpus-1, others),
		others/100, "of the time")
}
