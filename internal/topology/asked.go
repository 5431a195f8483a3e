package topology

import "time"

// Asked is how one node is asked for the map, as a recording shows it: for the ways out where no survey was made.
type Asked struct {
	Server    string // "redis 6.0.16"
	Command   Command
	Size      Size
	Replicas  int
	PerSecond float64       // calls on the node
	PerCall   time.Duration // of the main thread
	Everyone  bool          // each client asks all nodes
	Library   string        // of those who ask, as CLIENT LIST has it; empty where it is unknown
}

// WaysOut are the ways to make these refreshes cheaper that are possible and save something, each with the part that it saves.
func (a Asked) WaysOut() []WayOut {
	share := a.PerSecond * a.PerCall.Seconds()
	r := &Refreshes{dominant: &Refreshing{Command: a.Command.stat(), PerNode: a.PerSecond, PerCallNs: a.PerCall.Nanoseconds(), Share: share},
		masters: []NodeCost{{Master: true, Share: share}}}
	d := demand{command: a.Command, period: usualPeriod, everyone: a.Everyone, perNode: a.PerSecond, seen: true}
	rate := a.PerSecond
	if !a.Everyone {
		rate *= float64(max(1, a.Size.Nodes))
	}
	d.clients = max(1, int(rate*usualPeriod.Seconds()+0.5))
	m, _ := modelOf(a.Server, Measured{Command: a.Command, PerCall: a.PerCall}, a.Size)
	out := []WayOut{}
	for _, w := range waysOut(d, r, m, MapSummary{Size: a.Size, Replicas: a.Replicas}, []Refresher{{Library: a.Library, Refreshes: 1}}, nil) {
		if w.Possible && w.ID != "now" && w.Saves > 0 {
			out = append(out, w)
		}
	}
	return out
}

// AsksAll reports whether a library, by its name in CLIENT LIST, asks all nodes at each refresh; ok is false where that is not known.
func AsksAll(library string) (all, ok bool) {
	h, ok := habitOf(library)
	return h.everyone, ok
}
