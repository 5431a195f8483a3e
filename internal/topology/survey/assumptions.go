package survey

import (
	"slices"
	"time"

	"slowpath/internal/topology/cost"
)

// Assumptions are given for estimates. What is 0 is taken from what was observed, else from defaults.
type Assumptions struct {
	Version string // of this program
	Nodes   []int
	Clients int
	Period  time.Duration
}

const defaultClients = 1000

// defaultNodes are sizes of clusters to estimate in addition to the present one: 80 nodes, where map refreshes were
// first seen to hurt, and 300, as in redis#6165.
var defaultNodes = []int{80, 300}

// refreshLoad is how often clients refresh the map, as observed or assumed.
func (a Assumptions) refreshLoad(r *Refreshes, list []Refresher, libs []Library, nodes int) cost.RefreshLoad {
	load := cost.RefreshLoad{Command: cost.Nodes, Clients: a.Clients, Period: a.Period}
	if c, ok := r.dominantCommand(); ok {
		load.Command = c
	}
	load.AskAll = r.LettuceLike || anyAsksAll(list) || load.Command == cost.Nodes && !onlyAskOne(libs)
	if r.dominant != nil {
		load.PerNode, load.Counted = r.dominant.PerNode, true
	}
	if load.Period == 0 {
		load.Period = periodOf(list)
	}
	if load.Period == 0 {
		load.Period = cost.DefaultPeriod
	}
	switch {
	case load.Clients > 0:
	case load.Counted:
		load.Clients = load.ClientsFor(nodes)
	default:
		load.Clients = defaultClients
	}
	if !load.Counted {
		load.PerNode = load.Rate(nodes)
	}
	return load
}

// savingOptions estimates the options from the counted rate and cost per call; if no refresh was counted, from the
// assumptions.
func savingOptions(load cost.RefreshLoad, r *Refreshes, m *cost.Model, sum MapSummary, list []Refresher,
	libs []Library,
) []cost.Option {
	cluster := cost.Cluster{RefreshLoad: load, Size: sum.Size, Replicas: sum.Replicas, Policy: policyInUse(load, r,
		list, libs)}
	switch {
	case load.Counted:
		cluster.PerCall = time.Duration(r.dominant.PerCallNs)
	case m != nil:
		cluster.PerCall = m.At(sum.Size)
	default:
		return []cost.Option{}
	}
	cluster.MasterShare = load.PerNode * cluster.PerCall.Seconds()
	cluster.ReplicaShare = cluster.MasterShare
	if mean, ok := meanShare(r.masters); ok && load.Counted {
		cluster.MasterShare = mean
	}
	if mean, ok := meanShare(r.replicas); ok && load.Counted {
		cluster.ReplicaShare = mean
	}
	return cluster.Options(m)
}

// policyInUse is the refresh policy of the library that refreshes.
func policyInUse(load cost.RefreshLoad, r *Refreshes, list []Refresher, libs []Library) cost.RefreshPolicy {
	if r.LettuceLike {
		h, _ := cost.PolicyOf("lettuce")
		return h
	}
	for _, l := range list {
		if h, ok := cost.PolicyOf(l.Library); ok && l.Refreshes > 0 {
			return h
		}
	}
	for _, l := range libs {
		if h, ok := cost.PolicyOf(l.Library); ok && h.AskAll == load.AskAll {
			return h
		}
	}
	return cost.RefreshPolicy{}
}

func meanShare(list []NodeCost) (float64, bool) {
	sum := 0.0
	for _, c := range list {
		sum += c.Share
	}
	return sum / float64(max(1, len(list))), len(list) > 0
}

func anyAsksAll(list []Refresher) bool {
	return slices.ContainsFunc(list, func(r Refresher) bool {
		h, ok := cost.PolicyOf(r.Library)
		return ok && h.AskAll && r.Refreshes > 0
	})
}

// onlyAskOne reports whether there are libraries that ask one node, and none that ask all.
func onlyAskOne(libs []Library) bool {
	one := false
	for _, l := range libs {
		if h, ok := cost.PolicyOf(l.Library); ok {
			if h.AskAll {
				return false
			}
			one = true
		}
	}
	return one
}

func periodOf(list []Refresher) time.Duration {
	for _, r := range list {
		if r.PeriodNs > 0 && r.Refreshes > 0 {
			return time.Duration(r.PeriodNs)
		}
	}
	return 0
}

// sizes are the numbers of nodes to estimate for, the present one first.
func (a Assumptions) sizes(now int) []int {
	want := a.Nodes
	if len(want) == 0 {
		want = defaultNodes
	}
	out := []int{now}
	for _, n := range want {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}
