package facts

import (
	"slices"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// CPUHolder is whose work had the CPU for which the server's main thread waited.
type CPUHolder int

// Holders of a CPU.
const (
	UnknownHolder CPUHolder = iota // not seen, or the kernel's own short work
	LoadHolder                     // the server itself, its callers, a proxy before it, or slowpath
	ForeignHolder                  // a process that has nothing to do with the server's calls, or a child of it
)

// kernelTasks begin the names of kernel threads. They run for moments, at whoever's request.
var kernelTasks = []string{
	"kworker/", "ksoftirqd/", "migration/", "rcu_", "kswapd", "kcompactd", "jbd2/", "khugepaged", "cpuhp/",
	"the idle task",
}

// cpuWaits is what is known of the waits of a node's main thread for a CPU.
type cpuWaits struct {
	softirq *Softirq // nil: not seen
	// foreign is the share of foreign processes: of the waits whose holder was seen, else of what others than the
	// server used of its CPUs.
	foreign float64
}

func (n *Node) waitsForCPU() cpuWaits { return Once(n, "waits for a CPU", (*Node).findWaitsForCPU) }

func (n *Node) findWaitsForCPU() (w cpuWaits) {
	if q, ok := n.Softirq(); ok {
		w.softirq = &q
	}
	held := map[CPUHolder]float64{}
	for _, s := range n.Exact(account.RunQueue) {
		held[n.HolderOf(s.Culprit)] += float64(s.Ns())
	}
	if held[ForeignHolder]+held[LoadHolder] == 0 {
		c := n.NeighbourCores()
		held[ForeignHolder], held[LoadHolder] = c.Others, c.Callers+n.IOThreads().Total()
	}
	if held[ForeignHolder] > 0 {
		w.foreign = held[ForeignHolder] / (held[ForeignHolder] + held[LoadHolder])
	}
	return w
}

// HolderOf is whose work a task did, by its name as an account has it: "stress[812]".
func (n *Node) HolderOf(task string) CPUHolder {
	known := Once(n, "holders of a CPU", func(*Node) map[string]CPUHolder { return map[string]CPUHolder{} })
	holder, ok := known[task]
	if !ok {
		holder = n.findHolder(task)
		known[task] = holder
	}
	return holder
}

func (n *Node) findHolder(task string) CPUHolder {
	pid := PIDOf(task)
	name, _, _ := strings.Cut(task, "[")
	switch {
	case task == "" || slices.ContainsFunc(kernelTasks, func(of string) bool { return strings.HasPrefix(name, of) }):
		return UnknownHolder
	case ClientTools[name], pid != 0 && n.isLoad(pid):
		return LoadHolder
	}
	return ForeignHolder
}

// isLoad reports whether a process calls the server, passes calls on to it, or is slowpath.
func (n *Node) isLoad(pid int) bool {
	calls := func(c *Caller) bool { return c.PID == pid }
	watched := func(of *Node) bool { return of.ServerPID() == pid } // another node, which works for the same callers
	if slices.ContainsFunc(n.Callers(), calls) || len(n.ProcessSeries(pid, series.ClientCPU)) > 0 ||
		n.Ledger.IsHopProcess(pid) || n.ownPIDs()[pid] || slices.ContainsFunc(n.Nodes, watched) {
		return true
	}
	return slices.ContainsFunc(n.Neighbours(), func(w recording.Neighbour) bool {
		return w.PID == pid && (w.Caller || w.Self())
	})
}

// ForeignNs is the part in nanoseconds of a wait of the main thread for a CPU in which a foreign process had it. Where
// the holder was not seen, it is the share of these processes in what others than the server used of its CPUs. Softirqs
// on top of another task are no process.
func (n *Node) ForeignNs(s account.Segment) int64 {
	ns, w := s.Ns(), n.waitsForCPU()
	if w.softirq != nil {
		ns -= w.softirq.NsWithin(s)
	}
	switch n.HolderOf(s.Culprit) {
	case ForeignHolder:
		return ns
	case LoadHolder:
		return 0
	}
	return int64(float64(ns) * w.foreign)
}

// ForeignShare is the part of the main thread's waits for a CPU in which foreign processes had it.
func (n *Node) ForeignShare() float64 {
	waits := n.Exact(account.RunQueue)
	if len(waits) == 0 {
		waits = []account.Segment{{Actor: account.Server, State: account.RunQueue, ToNs: n.EndNs - n.StartNs}}
	}
	var foreign int64
	for _, s := range waits {
		foreign += n.ForeignNs(s)
	}
	return float64(foreign) / float64(max(SumWaits(waits).Ns, 1))
}
