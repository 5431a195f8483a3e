package mainthread

import (
	"slices"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// CPUHolder is whose work had the CPU for which the server's main thread waited.
type CPUHolder int

// Holders of a CPU.
const (
	unknownHolder CPUHolder = iota // not seen, or the kernel's own short work
	loadHolder                     // the server itself, its callers, a proxy before it, or slowpath
	foreignHolder                  // a process that has nothing to do with the server's calls, or a child of it
)

// kernelTasks begin the names of kernel threads. They run for moments, at whoever's request.
var kernelTasks = []string{
	"kworker/", "ksoftirqd/", "migration/", "rcu_", "kswapd", "kcompactd", "jbd2/", "khugepaged", "cpuhp/",
	"the idle task",
}

// cpuWaits is what is known of the waits of a node's main thread for a CPU.
type cpuWaits struct {
	softirq *hosts.Softirq // nil: not seen
	// foreign is the share of foreign processes: of the waits whose holder was seen, else of what others than the
	// server used of its CPUs.
	foreign float64
}

func waitsForCPU(n *facts.Node) cpuWaits { return facts.Once(n, "waits for a CPU", findWaitsForCPU) }

func findWaitsForCPU(n *facts.Node) (w cpuWaits) {
	if q, ok := hosts.SoftirqOf(n); ok {
		w.softirq = &q
	}
	held := map[CPUHolder]float64{}
	for _, s := range Exact(n, account.RunQueue) {
		held[holderOf(n, s.Culprit)] += float64(s.Ns())
	}
	if held[foreignHolder]+held[loadHolder] == 0 {
		c := NeighbourCoresOf(n)
		held[foreignHolder], held[loadHolder] = c.Others, c.Callers+hosts.IOThreadsOf(n).Total()
	}
	if held[foreignHolder] > 0 {
		w.foreign = held[foreignHolder] / (held[foreignHolder] + held[loadHolder])
	}
	return w
}

// holderOf is whose work a task did, by its name as an account has it: "stress[812]".
func holderOf(n *facts.Node, task string) CPUHolder {
	known := facts.Once(n, "holders of a CPU", func(*facts.Node) map[string]CPUHolder { return map[string]CPUHolder{} })
	holder, ok := known[task]
	if !ok {
		holder = findHolder(n, task)
		known[task] = holder
	}
	return holder
}

func findHolder(n *facts.Node, task string) CPUHolder {
	pid := hosts.PIDOf(task)
	name, _, _ := strings.Cut(task, "[")
	switch {
	case task == "" || slices.ContainsFunc(kernelTasks, func(of string) bool { return strings.HasPrefix(name, of) }):
		return unknownHolder
	case ClientTools[name], pid != 0 && isLoad(n, pid):
		return loadHolder
	}
	return foreignHolder
}

// isLoad reports whether a process calls the server, passes calls on to it, or is slowpath.
func isLoad(n *facts.Node, pid int) bool {
	calls := func(c *caller.Caller) bool { return c.PID == pid }
	// another node, which works for the same callers
	watched := func(of *facts.Node) bool { return hosts.ServerPID(of) == pid }
	if slices.ContainsFunc(caller.Callers(n), calls) || len(n.ProcessSeries(pid, series.ClientCPU)) > 0 ||
		n.Ledger.IsHopProcess(pid) || hosts.OwnPIDs(n.Case)[pid] || slices.ContainsFunc(n.Nodes, watched) {
		return true
	}
	return slices.ContainsFunc(Neighbours(n), func(w recording.Neighbour) bool {
		return w.PID == pid && (w.Caller || w.Self())
	})
}

// ForeignNs is the part in nanoseconds of a wait of the main thread for a CPU in which a foreign process had it. Where
// the holder was not seen, it is the share of these processes in what others than the server used of its CPUs. Softirqs
// on top of another task are no process.
func ForeignNs(n *facts.Node, s account.Segment) int64 {
	ns, w := s.Ns(), waitsForCPU(n)
	if w.softirq != nil {
		ns -= w.softirq.NsWithin(s)
	}
	switch holderOf(n, s.Culprit) {
	case foreignHolder:
		return ns
	case loadHolder:
		return 0
	}
	return int64(float64(ns) * w.foreign)
}

// ForeignShare is the part of the main thread's waits for a CPU in which foreign processes had it.
func ForeignShare(n *facts.Node) float64 {
	waits := Exact(n, account.RunQueue)
	if len(waits) == 0 {
		waits = []account.Segment{{Actor: account.Server, State: account.RunQueue, ToNs: n.EndNs - n.StartNs}}
	}
	var foreign int64
	for _, s := range waits {
		foreign += ForeignNs(n, s)
	}
	return float64(foreign) / float64(max(SumWaits(waits).Ns, 1))
}
