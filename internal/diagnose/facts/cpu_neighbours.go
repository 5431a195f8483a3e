package facts

import (
	"fmt"
	"sort"

	"slowpath/internal/recording"
)

const (
	// WaitsSome is the least part of its demand for CPU that it must spend waiting before slow calls are laid on the
	// scheduler: on a machine that is merely busy a few calls are held up now and then.
	MinRunQueueShare = 0.3
)

// OnItsCPUs divides the neighbours' use of the server's CPUs by whether they ask the server: by their connections, and
// for the command line tools, which may live too short to be seen with one, by name.
func (n *Node) NeighbourCores() (callers, strangers float64) {
	for _, w := range n.Neighbours() {
		listed := len(n.Rec.Series(recording.SourceHost, fmt.Sprintf("%s%d", recording.ProcessPrefix, w.PID),
			"cpu_ns")) > 0
		if w.Caller || listed || w.Self() || ClientTools[w.Command] {
			callers += w.Cores
		} else {
			strangers += w.Cores
		}
	}
	return callers, strangers
}

var ClientTools = map[string]bool{
	"redis-cli": true, "valkey-cli": true, "redis-benchmark": true,
	"valkey-benchmark": true, "memtier_benchmark": true,
}

// Neighbours are the processes that used most of the server's CPUs over the watch, largest first.
func (n *Node) Neighbours() []recording.Neighbour {
	byPID := map[int]recording.Neighbour{}
	events := n.Events(recording.SourceHost, recording.KindNeighbours)
	for _, e := range events {
		for _, w := range recording.DetailOf[[]recording.Neighbour](e) {
			sum := byPID[w.PID]
			w.Cores = sum.Cores + w.Cores/float64(len(events))
			w.Caller = w.Caller || sum.Caller
			byPID[w.PID] = w
		}
	}
	out := make([]recording.Neighbour, 0, len(byPID))
	for _, w := range byPID {
		if w.Cores >= 0.02 {
			out = append(out, w)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Cores > out[j].Cores })
	return out
}
