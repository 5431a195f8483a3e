package trace

import (
	"cmp"
	"slices"

	"slowpath/internal/recording"
)

// Group is a set of calls that waited for the same thing at the same time, such as 40 calls behind one KEYS: showing
// one of them is enough.
type Group struct {
	Worst      Call           // the longest, the first of equally long ones
	Others     int            // other calls
	LeastNs    int64          // duration of the shortest
	ByCommand  map[string]int // number of calls
	from, to   int64          // when the worst waited
	lastSeenNs int64          // end of the last call
}

type groupKey struct{ node, actor, state, culprit, caller string }

// groupOpenNs is how long a group stays open after the end of its last call. The tap waits 300 ms for the
// other end of a call.
const groupOpenNs = int64(600e6)

// Groups collects calls into groups.
type Groups struct {
	Each bool // no groups: each call is one of its own
	open map[groupKey][]*Group
}

// Add adds a call. Calls come in about the order of their ends.
func (g *Groups) Add(c Call) {
	d := c.dominant()
	key := groupKey{c.Node, d.Actor, d.State, d.Culprit, callerIfOwn(c, d)}
	from, to := c.FromNs()+d.FromNs, c.FromNs()+d.ToNs
	for _, o := range g.open[key] {
		if !g.Each && o.overlaps(from, to) {
			o.add(c, from, to)
			return
		}
	}
	if g.open == nil {
		g.open = map[groupKey][]*Group{}
	}
	g.open[key] = append(g.open[key], &Group{
		Worst: c, LeastNs: c.Ns, ByCommand: map[string]int{c.Op: 1}, from: from,
		to: to, lastSeenNs: c.ToNs(),
	})
}

// callerIfOwn separates calls without a culprit: its own execution and its client's delays concern no other call. Waits
// for the server's thread concern all.
func callerIfOwn(c Call, d Segment) string {
	switch {
	case d.Culprit != "":
		return ""
	case d.State == recording.Exec:
		return c.Client + " " + c.Op
	case d.Actor == recording.Client, d.Actor == recording.Network:
		return c.caller()
	}
	return ""
}

// overlaps reports whether at least half of the shorter wait is common. Less is not enough: a client may send its next
// call, which waits for the next KEYS, before the last reply of the first group is sent.
func (o *Group) overlaps(from, to int64) bool {
	common := min(o.to, to) - max(o.from, from)
	return common > 0 && 2*common >= min(o.to-o.from, to-from)
}

func (o *Group) add(c Call, from, to int64) {
	o.Others++
	o.ByCommand[c.Op]++
	o.LeastNs = min(o.LeastNs, c.Ns)
	if c.Ns > o.Worst.Ns {
		o.Worst, o.from, o.to = c, from, to
	}
	o.lastSeenNs = max(o.lastSeenNs, c.ToNs())
}

// Due returns and removes the groups that are complete at a time, in the order in which their calls began.
func (g *Groups) Due(nowNs int64) []Group {
	var due []Group
	for key, open := range g.open {
		remaining := slices.DeleteFunc(open, func(o *Group) bool {
			over := g.Each || nowNs-o.lastSeenNs >= groupOpenNs
			if over {
				due = append(due, *o)
			}
			return over
		})
		if g.open[key] = remaining; len(remaining) == 0 {
			delete(g.open, key)
		}
	}
	slices.SortStableFunc(due, func(a, b Group) int {
		return cmp.Or(a.Worst.Time.Compare(b.Worst.Time), cmp.Compare(a.Worst.Client, b.Worst.Client))
	})
	return due
}

// All returns and removes all groups.
func (g *Groups) All() []Group { return g.Due(1<<63 - 1) }
