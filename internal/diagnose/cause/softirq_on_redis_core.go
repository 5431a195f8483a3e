package cause

import (
	"fmt"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// softirqOnRedisCore: the kernel handles the packets of a network card on the CPU of the main thread. Softirqs run
// before every process; the rest goes to ksoftirqd, which shares the CPU with it.
var softirqOnRedisCore = Cause{
	ID:      "softirq-on-redis-core",
	Class:   ServerStall,
	Explain: explainSoftirq,
}

func explainSoftirq(n *facts.Node) *Finding {
	q, ok := hosts.SoftirqOf(n)
	if !ok || !q.Heavy(n) {
		return nil
	}
	// Of the time that others had the CPU while the main thread was in the run queue, softirqs had a share.
	part := q.ShareOfRest()
	cl := n.ClaimOf(func(a account.Account) (times facts.StateTimes) {
		for _, s := range a.Segments {
			switch {
			case s.Actor != account.Server:
			case s.State == account.RunQueue:
				times.Add(s, q.NsWithin(s))
			case s.State == account.Busy, s.State == account.Exec:
				times.Add(s, int64(q.ShareWithin(s.FromNs, s.ToNs)*float64(s.Ns()))) // during its own work
			}
		}
		return times
	})
	if !cl.Matters() {
		return nil
	}
	f := finding(n, cl)
	f.support(recording.SourceHost, q.Share(n), "of the time", "the main thread's CPU %d spent %.0f %% of the time in "+
		"softirqs (/proc/stat); the server itself used %.0f %% of it", q.CPU, 100*q.Share(n),
		n.Growth(series.MainRun)/1e7/n.Seconds())
	f.support(recording.SourceHost, q.OwnNs, "ns", "the server's own packets need %.0f %% at most (%.0f TCP segments "+
		"per second in its namespace)", q.OwnNs/1e7/n.Seconds(), q.OwnNs/hosts.SoftirqNsPerSegment/n.Seconds())
	waits := n.Claim(func(_ account.Account, s account.Segment) bool {
		return s.Actor == account.Server && s.State == account.RunQueue && strings.HasPrefix(s.Culprit,
			q.ThreadName()+"[")
	})
	if waits.Calls > 0 {
		f.support(recording.SourceTap, float64(waits.Calls), "calls", "%s waited while %s had the CPU, up to %s in "+
			"one call", ofSlow(waits.Calls, n), q.ThreadName(), format.Brief(waits.MaxNs))
	}
	f.supportQuiet(n, q)
	if part < mostOfRunQueue {
		f.weaken(1)
		f.doubt(recording.SourceHost, q.OthersNs, "ns",
			"other processes used %.0f %% of that CPU as well", q.OthersNs/1e7/n.Seconds())
	}
	f.FixSteps = softirqFix(n, q)
	return f
}

// softirqFix moves the server first: that needs no knowledge of the card.
func softirqFix(n *facts.Node, q hosts.Softirq) []remedy.Step {
	move := remedy.Step{
		ID: "move-server", Kind: remedy.Change, Restart: "the server",
		Text: fmt.Sprintf("Keep the server off CPU %d: server_cpulist in its configuration, or a cpuset", q.CPU),
	}
	if cpus, pid := otherCPUs(n, q.CPU), hosts.ServerPID(n); cpus != "" && pid != 0 {
		move.Kind, move.Restart, move.Command = remedy.Command, "", moveProcesses([]int{pid}, cpus)
		move.Text = fmt.Sprintf("Keep the server off CPU %d", q.CPU)
		move.Risk = "a restart forgets it, unless server_cpulist (Redis 6.0, Valkey) or a cpuset keeps it"
		if before := mainAffinity(n); before != "" {
			move.Undo = moveProcesses([]int{pid}, before)
		}
	}
	return []remedy.Step{
		move,
		orElse(change("move-interrupts", "Move the card's interrupts to another CPU: smp_affinity_list below "+
			"/proc/irq, by its numbers in /proc/interrupts. irqbalance moves them back unless CPU %d is in "+
			"IRQBALANCE_BANNED_CPULIST", q.CPU)),
		orElse(change("spread-packets", "If the card has one queue, let other CPUs handle what it receives: rps_cpus "+
			"of its queue below /sys/class/net (RPS)")),
	}
}

// supportQuiet compares with the other CPUs.
func (f *Finding) supportQuiet(n *facts.Node, q hosts.Softirq) {
	cpus := facts.LastValue(n.Series(series.MachineCPUs))
	all := n.Growth(series.MachineSoftirq)
	if cpus <= 1 || all <= 0 {
		return
	}
	others := max(all-q.Ns, 0) / 1e7 / n.Seconds() / (cpus - 1)
	f.support(recording.SourceHost, others/100, "of the time",
		"the other %.0f CPUs spent %.0f %% on average in softirqs", cpus-1, others)
}
