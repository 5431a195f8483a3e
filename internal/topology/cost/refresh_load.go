package cost

import "time"

// DefaultPeriod is the default of Lettuce, go-redis and StackExchange.Redis.
const DefaultPeriod = time.Minute

// LongerPeriod is what is advised where the present one is not known.
const LongerPeriod = DefaultPeriod * longerPeriodFactor

// RefreshLoad is how often clients refresh the map, as counted or assumed.
type RefreshLoad struct {
	Command Command
	Clients int
	Period  time.Duration
	AskAll  bool    // each client asks all nodes
	PerNode float64 // calls per second and node
	Counted bool    // PerNode was counted, not assumed
}

// Rate is the calls per second and node in a cluster of so many nodes.
func (a RefreshLoad) Rate(nodes int) float64 {
	rate := float64(a.Clients) / a.Period.Seconds()
	if !a.AskAll {
		rate /= float64(max(1, nodes))
	}
	return rate
}

// ClientsFor is how many clients make the rate PerNode in a cluster of so many nodes.
func (a RefreshLoad) ClientsFor(nodes int) int {
	rate := a.PerNode
	if !a.AskAll {
		rate *= float64(max(1, nodes))
	}
	return max(1, int(rate*a.Period.Seconds()+0.5))
}

// Cluster is a cluster and its load of map refreshes.
type Cluster struct {
	RefreshLoad
	Size         Size
	Replicas     int
	PerCall      time.Duration // of the main thread, now
	MasterShare  float64       // mean share of a master's main thread
	ReplicaShare float64       // mean share of a replica's main thread
	Policy       RefreshPolicy // of the library that refreshes, if it is known
}
