package survey

import (
	"slices"
	"time"

	"slowpath/internal/topology/cost"
)

// Question is what to reckon with. What is 0 is taken from what was seen, and where nothing was, from what is usual.
type Question struct {
	Version string // of this program
	Nodes   []int
	Clients int
	Period  time.Duration
}

const usualClients = 1000

// usualNodes are sizes to reckon with beside the present one: incident 002's and its end (redis#6165 has 300).
var usualNodes = []int{80, 300}

// askingOf takes what was seen.
func (q Question) askingOf(r *Refreshes, list []Refresher, libs []Library, nodes int) cost.Asking {
	a := cost.Asking{Command: cost.Nodes, Clients: q.Clients, Period: q.Period}
	if c, ok := r.command(); ok {
		a.Command = c
	}
	a.Everyone = r.LettuceLike || anyEveryone(list) || a.Command == cost.Nodes && !anyOne(libs)
	if r.dominant != nil {
		a.PerNode, a.Seen = r.dominant.PerNode, true
	}
	if a.Period == 0 {
		a.Period = periodOf(list)
	}
	if a.Period == 0 {
		a.Period = cost.UsualPeriod
	}
	switch {
	case a.Clients > 0:
	case a.Seen:
		a.Clients = a.ClientsOf(nodes)
	default:
		a.Clients = usualClients
	}
	if !a.Seen {
		a.PerNode = a.Rate(nodes)
	}
	return a
}

// waysOut reckons with the rate and the cost per call that were counted; where nobody was seen to refresh, with those
// of the question.
func waysOut(a cost.Asking, r *Refreshes, m *cost.Model, sum MapSummary, list []Refresher,
	libs []Library,
) []cost.WayOut {
	c := cost.Cluster{Asking: a, Size: sum.Size, Replicas: sum.Replicas, Habit: habitAsked(a, r, list, libs)}
	switch {
	case a.Seen:
		c.PerCall = time.Duration(r.dominant.PerCallNs)
	case m != nil:
		c.PerCall = m.At(sum.Size)
	default:
		return []cost.WayOut{}
	}
	c.Masters = a.PerNode * c.PerCall.Seconds()
	c.Spare = c.Masters
	if mean, ok := meanShare(r.masters); ok && a.Seen {
		c.Masters = mean
	}
	if mean, ok := meanShare(r.spare); ok && a.Seen {
		c.Spare = mean
	}
	return c.WaysOut(m)
}

// habitAsked is that of the library that refreshes.
func habitAsked(a cost.Asking, r *Refreshes, list []Refresher, libs []Library) cost.Habit {
	if r.LettuceLike {
		h, _ := cost.HabitOf("lettuce")
		return h
	}
	for _, l := range list {
		if h, ok := cost.HabitOf(l.Library); ok && l.Refreshes > 0 {
			return h
		}
	}
	for _, l := range libs {
		if h, ok := cost.HabitOf(l.Library); ok && h.Everyone == a.Everyone {
			return h
		}
	}
	return cost.Habit{}
}

func meanShare(list []NodeCost) (float64, bool) {
	sum := 0.0
	for _, c := range list {
		sum += c.Share
	}
	return sum / float64(max(1, len(list))), len(list) > 0
}

func anyEveryone(list []Refresher) bool {
	return slices.ContainsFunc(list, func(r Refresher) bool {
		h, ok := cost.HabitOf(r.Library)
		return ok && h.Everyone && r.Refreshes > 0
	})
}

// anyOne reports whether libraries have connections that ask one node, and none that ask all.
func anyOne(libs []Library) bool {
	one := false
	for _, l := range libs {
		if h, ok := cost.HabitOf(l.Library); ok {
			if h.Everyone {
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

// sizes are the numbers of nodes to reckon with, the present one first.
func (q Question) sizes(now int) []int {
	want := q.Nodes
	if len(want) == 0 {
		want = usualNodes
	}
	out := []int{now}
	for _, n := range want {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}
