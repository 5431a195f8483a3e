package simulate

import (
	"slices"
	"time"
)

// Schema names the JSON document.
const Schema = "slowpath.topology-simulation/v1"

// Where costs are from.
const (
	Measured  = "measured"  // on the target
	Reference = "reference" // on the machine of the reference
)

// Report is the simulation of several policies on one setup.
type Report struct {
	Schema  string   `json:"schema"`
	Version string   `json:"version"`
	Target  string   `json:"target"`    // whose size and costs are used; empty: none
	Costs   string   `json:"cost_from"` // measured or reference
	Setup   Setup    `json:"setup"`
	Results []Result `json:"results"`
}

// Result is what a policy leads to. Rates are of all clients and nodes together unless they say otherwise, "most" is
// that of the second with the most.
type Result struct {
	Policy   Policy `json:"policy"`
	Stale    Stale  `json:"stale"`
	Moved    Rate   `json:"moved"`
	Asks     Rate   `json:"ask"`
	Failed   Rate   `json:"failed"`  // calls to a node that is down or silent, and to slots that have no node
	Loading  Rate   `json:"loading"` // calls that LOADING answers; most is not known
	Refresh  Rate   `json:"refreshes"`
	Commands Rate   `json:"commands"` // CLUSTER NODES, SLOTS or SHARDS
	// NodeMost is the most commands per second of one node.
	NodeMost float64 `json:"commands_node_most"`
	// CPUMasters and CPUReplicas are the mean share of the main thread that the commands take.
	CPUMasters  float64 `json:"cpu_masters"`
	CPUReplicas float64 `json:"cpu_replicas"`
	CPUMost     float64 `json:"cpu_most"`         // of the node and second where it is most
	Early       int     `json:"early_refreshes"`  // whose map was old again, since they came while the change went on
	SlowestNs   int64   `json:"refresh_most_ns"`  // the longest refresh
	MovedFor    int64   `json:"moved_last_ns"`    // from the first change to the last MOVED
	Backward    int     `json:"backward_changes"` // that a client knew, until an older view replaced its map
}

// Rate is a count, and what it is per second.
type Rate struct {
	Count     int     `json:"count"`
	PerSecond float64 `json:"per_second"` // mean; of calls from the first change on
	Most      float64 `json:"most"`
}

// Stale is the time from a change until a client has it in its map, over all clients and changed slots.
type Stale struct {
	MedianNs int64 `json:"median_ns"`
	P99Ns    int64 `json:"p99_ns"`
	LastNs   int64 `json:"last_ns"`
	// Never is the share of clients and changes that were not known at the end; the times are at least what they say.
	Never float64 `json:"never"`
}

// perSecond counts events by the second.
type perSecond []int

func (p perSecond) add(t float64) {
	if i := int(t); i < len(p) {
		p[i]++
	}
}

// rate sums up, with the mean over the seconds from that time on.
func (p perSecond) rate(from time.Duration) Rate {
	r := Rate{}
	late := 0
	for i, n := range p {
		r.Count += n
		r.Most = max(r.Most, float64(n))
		if i >= int(from.Seconds()) {
			late += n
		}
	}
	r.PerSecond = float64(late) / max(1, float64(len(p))-from.Seconds())
	return r
}

// staleOf sums up the times, of which never are missing. It sorts them.
func staleOf(times []float64, never int, end float64) Stale {
	for range never {
		times = append(times, end)
	}
	if len(times) == 0 {
		return Stale{}
	}
	slices.Sort(times)
	at := func(q float64) int64 { return int64(times[int(q*float64(len(times)-1))] * 1e9) }
	return Stale{
		MedianNs: at(0.5), P99Ns: at(0.99), LastNs: at(1), Never: float64(never) / float64(len(times)),
	}
}
