package mainthread

import (
	"cmp"
	"maps"
	"slices"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// NeighbourCores is what other processes used of the CPUs that the server may run on, in cores.
type NeighbourCores struct {
	// Callers is the use of processes that call the server: those with connections to it, and command line tools, which
	// may be too short-lived to be seen with one, by their names. The other hops on the way of calls work for them.
	Callers float64
	// Others is the use of all other processes.
	Others float64
}

// NeighbourCoresOf is the mean over the watch.
func NeighbourCoresOf(n *facts.Node) (c NeighbourCores) {
	for _, w := range Neighbours(n) {
		if ClientTools[w.Command] || isLoad(n, w.PID) {
			c.Callers += w.Cores
		} else {
			c.Others += w.Cores
		}
	}
	return c
}

// TotalNeighbourCores is the use of all neighbours together, in cores.
func TotalNeighbourCores(n *facts.Node) float64 {
	cores := 0.0
	for _, w := range Neighbours(n) {
		cores += w.Cores
	}
	return cores
}

// ClientTools are the names of command line clients and benchmarks.
var ClientTools = map[string]bool{
	"redis-cli": true, "valkey-cli": true, "redis-benchmark": true,
	"valkey-benchmark": true, "memtier_benchmark": true,
}

// Neighbours are the processes that used most of the server's CPUs, by their mean over the watch, largest first.
func Neighbours(n *facts.Node) []recording.Neighbour {
	byPID := map[int]recording.Neighbour{}
	events := n.Events(recording.SourceHost, recording.KindNeighbours)
	for _, e := range events {
		for _, w := range recording.DetailOf[[]recording.Neighbour](e) {
			sum := byPID[w.PID]
			w.Cores = sum.Cores + w.Cores/float64(len(events))
			w.Caller = w.Caller || sum.Caller || n.Ledger.IsHopProcess(w.PID)
			byPID[w.PID] = w
		}
	}
	return slices.SortedFunc(maps.Values(byPID), func(a, b recording.Neighbour) int {
		return cmp.Or(cmp.Compare(b.Cores, a.Cores), cmp.Compare(a.PID, b.PID))
	})
}
