package cost

import "time"

// UsualPeriod is Lettuce's, go-redis', StackExchange.Redis'.
const UsualPeriod = time.Minute

// Asking is how often clients ask for the map, now or in the case that is reckoned.
type Asking struct {
	Command  Command
	Clients  int
	Period   time.Duration
	Everyone bool    // each client asks all nodes
	PerNode  float64 // calls per second and node
	Seen     bool    // the rate was counted, not assumed
}

// Rate is calls per second and node with so many nodes.
func (a Asking) Rate(nodes int) float64 {
	rate := float64(a.Clients) / a.Period.Seconds()
	if !a.Everyone {
		rate /= float64(max(1, nodes))
	}
	return rate
}

// ClientsOf is how many clients ask so often with so many nodes.
func (a Asking) ClientsOf(nodes int) int {
	rate := a.PerNode
	if !a.Everyone {
		rate *= float64(max(1, nodes))
	}
	return max(1, int(rate*a.Period.Seconds()+0.5))
}

// Cluster is a cluster and how it is asked for its map.
type Cluster struct {
	Asking
	Size     Size
	Replicas int
	PerCall  time.Duration // of the main thread, now
	Masters  float64       // share of the time of a master's main thread, mean
	Spare    float64       // of a replica's
	Habit    Habit         // of the library that asks, as far as it is known
}
