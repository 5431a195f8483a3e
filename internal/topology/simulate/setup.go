package simulate

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/topology/cost"
	"slowpath/internal/wire/cluster"
)

// ChangeKind is what happens to the cluster.
type ChangeKind string

// The changes.
const (
	NoChange ChangeKind = "none"
	Slots    ChangeKind = "slots"    // slots move one by one from a master to another
	Failover ChangeKind = "failover" // a master's process ends, and its replica takes over
	Hang     ChangeKind = "hang"     // a master stops and closes no connection; its replica takes over
	Rejoin   ChangeKind = "rejoin"   // as failover; then the old master comes back as a replica and loads its data
)

// ChangeKinds lists them.
var ChangeKinds = []ChangeKind{Slots, Failover, Hang, Rejoin, NoChange}

// Change is what happens, and when.
type Change struct {
	Kind      ChangeKind    `json:"kind"`
	At        time.Duration `json:"at_ns"` // the first slot, or the failure
	Slots     int           `json:"slots"` // that move
	PerSecond float64       `json:"slots_per_second"`
	Open      time.Duration `json:"open_ns"`     // how long each is open before it moves: calls to moved keys get ASK
	Gap       time.Duration `json:"gap_ns"`      // how long a moved slot has no node before the receiver has it
	NewNode   bool          `json:"new_node"`    // the receiver has just joined
	Promotion time.Duration `json:"promoted_ns"` // from the failure until the replica is the master
	Back      time.Duration `json:"back_ns"`     // from the failure until the old master is back
	Loading   time.Duration `json:"loading_ns"`  // how long it answers LOADING
}

// Setup is the cluster, its clients and the change.
type Setup struct {
	Server   string        `json:"server"` // whose costs are used: "redis 6.0.16"
	Size     cost.Size     `json:"size"`
	Masters  int           `json:"masters"`
	Replicas int           `json:"replicas"`  // of each master
	Spread   time.Duration `json:"spread_ns"` // mean time after which a node has heard of a moved slot
	Clients  int           `json:"clients"`   // each with a map of its own
	Calls    float64       `json:"calls_per_second_per_client"`
	InUse    int           `json:"slots_in_use"` // calls go to so many slots, those that change among them
	RTT      time.Duration `json:"rtt_ns"`
	Change   Change        `json:"change"`
	Duration time.Duration `json:"duration_ns"`
	Seed     uint64        `json:"seed"`
	// Costs are the time of the main thread for one call.
	Costs map[cost.Command]time.Duration `json:"cost_ns"`
}

// The bounds of a setup, for memory and time.
const (
	mostNodes    = 1000
	mostClients  = 100_000
	mostSlots    = 4096 // that move
	mostDuration = time.Hour
	mostPairs    = 16_000_000 // clients × changes
	mostCalls    = 1e5        // of one client per second
)

// SpreadOf is the usual mean time after which nodes have heard of a moved slot: from 6.2 on the receiver tells all
// nodes at once, before they learn it by gossip (docs/decisions/0016-topology-watch.md has measurements).
func SpreadOf(server string) time.Duration {
	_, version, _ := strings.Cut(server, " ")
	for _, old := range []string{"2.", "3.", "4.", "5.", "6.0"} {
		if strings.HasPrefix(version, old) {
			return 2 * time.Second
		}
	}
	return 5 * time.Millisecond
}

// SizeOf is the size of the map of a regular cluster.
func SizeOf(masters, replicas, ranges int) cost.Size {
	return cost.Size{
		Nodes: masters * (1 + replicas), Masters: masters, Ranges: masters * ranges,
		Entries: masters * ranges * (1 + replicas),
	}
}

// CostsOf is what the commands cost on a server of the reference, on its machine.
func CostsOf(server string, s cost.Size) (map[cost.Command]time.Duration, error) {
	costs := map[cost.Command]time.Duration{}
	for _, c := range cost.Commands {
		if d, ok := cost.OnReference(server, c, s); ok {
			costs[c] = d
		}
	}
	if len(costs) == 0 {
		return nil, fmt.Errorf("%q: give a product and a version, such as \"redis 6.0.16\" or \"valkey 8.1.1\"", server)
	}
	return costs, nil
}

// Check returns an error for a setup that cannot be simulated. It names the flag.
func (s *Setup) Check() error {
	c := &s.Change
	nodes := s.Masters * (1 + s.Replicas)
	switch {
	case s.Masters < 2 || s.Replicas < 0 || nodes > mostNodes:
		return fmt.Errorf("--masters %d --replicas %d: give 2 masters or more, and at most %d nodes in all", s.Masters,
			s.Replicas, mostNodes)
	case s.Clients < 1 || s.Clients > mostClients:
		return fmt.Errorf("--clients %d: give 1 to %d", s.Clients, mostClients)
	case !(s.Calls >= 0.001 && s.Calls <= mostCalls):
		return fmt.Errorf("--calls %v: give 0.001 to %v per second and client", s.Calls, mostCalls)
	case s.InUse < 1 || s.InUse > cluster.SlotCount:
		return fmt.Errorf("--slots-in-use %d: give 1 to %d", s.InUse, cluster.SlotCount)
	case s.RTT < 0 || s.RTT > time.Minute:
		return fmt.Errorf("--rtt %v: give 0 to 1m", s.RTT)
	case s.Spread < 0 || s.Spread > time.Minute:
		return fmt.Errorf("--spread %v: give 0 to 1m", s.Spread)
	case s.Duration < time.Second || s.Duration > mostDuration:
		return fmt.Errorf("--for %v: give 1s to %v", s.Duration, mostDuration)
	case !slices.Contains(ChangeKinds, c.Kind):
		return fmt.Errorf("--change %s: known: %v", c.Kind, ChangeKinds)
	case c.Kind == Slots:
		return s.checkSlots()
	case c.Kind != NoChange && s.Replicas == 0:
		return fmt.Errorf("--change %s: a master needs a replica that takes over; give --replicas 1", c.Kind)
	}
	return s.checkEnd()
}

func (s *Setup) checkSlots() error {
	c := &s.Change
	switch {
	case c.Slots < 1 || c.Slots > mostSlots || c.Slots > s.InUse:
		return fmt.Errorf("--slots %d: give 1 to %d, and not more than are in use", c.Slots, mostSlots)
	case !(c.PerSecond >= 0.01 && c.PerSecond <= 1e6):
		return fmt.Errorf("--slots-per-second %v: give 0.01 to 1e6", c.PerSecond)
	case c.Open < 0 || c.Gap < 0 || c.Open > time.Minute || c.Gap > time.Minute:
		return errors.New("--open, --gap: give 0 to 1m")
	case s.Clients*c.Slots > mostPairs:
		return fmt.Errorf("--clients %d and --slots %d: at most %d clients × slots; give fewer of either", s.Clients,
			c.Slots, mostPairs)
	}
	return s.checkEnd()
}

// checkEnd: the change must end before the simulation does.
func (s *Setup) checkEnd() error {
	c := &s.Change
	if c.Promotion < 0 || c.Back < 0 || c.Loading < 0 {
		return errors.New("--promotion, --back, --loading: must not be negative")
	}
	if calls := float64(s.Clients) * s.Calls * s.share() * s.Duration.Seconds(); calls > mostSteps {
		return fmt.Errorf("%s calls to slots that change, of which %s can be simulated; give less of "+
			"--clients, --calls or --for", format.Rounded(calls), format.Thousands(mostSteps))
	}
	if end := c.end(); end >= s.Duration {
		return fmt.Errorf("--for %v: the change ends after %v only; give more", s.Duration, end.Round(time.Second/10))
	}
	return nil
}

// share of the calls that go to slots that change.
func (s *Setup) share() float64 {
	switch s.Change.Kind {
	case NoChange:
		return 0
	case Slots:
		return float64(s.Change.Slots) / float64(s.InUse)
	}
	return 1 / float64(s.Masters)
}

// end is when the cluster itself does not change any more.
func (c *Change) end() time.Duration {
	switch c.Kind {
	case Slots:
		last := float64(c.Slots-1) / c.PerSecond
		return c.At + c.Open + c.Gap + time.Duration(math.Min(last, 1e6)*float64(time.Second))
	case Failover, Hang:
		return c.At + c.Promotion
	case Rejoin:
		return c.At + max(c.Promotion, c.Back+c.Loading)
	}
	return 0
}
