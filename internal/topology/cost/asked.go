package cost

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

// WaysOut are the ways to make these refreshes cheaper that are possible and save something, each with the part that it
// saves.
func (a Asked) WaysOut() []WayOut {
	share := a.PerSecond * a.PerCall.Seconds()
	habit, _ := HabitOf(a.Library)
	c := Cluster{
		Asking: Asking{
			Command: a.Command, Period: UsualPeriod, Everyone: a.Everyone, PerNode: a.PerSecond,
			Seen: true,
		},
		Size: a.Size, Replicas: a.Replicas, PerCall: a.PerCall, Masters: share, Spare: share, Habit: habit,
	}
	c.Clients = c.ClientsOf(a.Size.Nodes)
	m, _ := ModelOf(a.Server, Measured{Command: a.Command, PerCall: a.PerCall}, a.Size)
	out := []WayOut{}
	for _, w := range c.WaysOut(m) {
		if w.Possible && w.ID != "now" && w.Saves > 0 {
			out = append(out, w)
		}
	}
	return out
}
