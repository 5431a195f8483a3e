package cost

import "time"

// Asked is the load of map refreshes on one node, as a recording shows it: for estimates without a survey.
type NodeLoad struct {
	Server    string // "redis 6.0.16"
	Command   Command
	Size      Size
	Replicas  int
	PerSecond float64       // calls on the node
	PerCall   time.Duration // of the main thread
	AskAll    bool          // each client asks all nodes
	Library   string        // of the clients that refresh, as CLIENT LIST has it; empty if it is unknown
}

// Options lists the options that are possible and save something, each with the share that it saves.
func (a NodeLoad) Options() []Option {
	share := a.PerSecond * a.PerCall.Seconds()
	policy, _ := PolicyOf(a.Library)
	c := Cluster{
		RefreshLoad: RefreshLoad{
			Command: a.Command, Period: DefaultPeriod, AskAll: a.AskAll, PerNode: a.PerSecond,
			Counted: true,
		},
		Size: a.Size, Replicas: a.Replicas, PerCall: a.PerCall, MasterShare: share, ReplicaShare: share, Policy: policy,
	}
	c.Clients = c.ClientsFor(a.Size.Nodes)
	m, _ := ModelOf(a.Server, Measured{Command: a.Command, PerCall: a.PerCall}, a.Size)
	out := []Option{}
	for _, w := range c.Options(m) {
		if w.Possible && w.ID != "now" && w.Saves > 0 {
			out = append(out, w)
		}
	}
	return out
}
