package trace

import (
	"cmp"
	"slices"

	"slowpath/internal/recording"
)

// Group is the calls that waited for the same thing at the same time: of forty that one KEYS held up, one says it all.
type Group struct {
	Worst      Call           // the longest, first for those that are equally long
	Others     int            // calls beside it
	LeastNs    int64          // length of the shortest
	ByCommand  map[string]int // all of the group
	from, to   int64          // when they waited
	lastSeenNs int64          // end of the last
}

type groupKey struct{ node, actor, state, culprit, caller string }

// linger is how long after the end of its last call a group stays open. Views of both ends of a connection are joined
// for 300 ms.
const groupOpenNs = int64(600e6)

// Groups collects calls into groups.
type Groups struct {
	Each bool // no groups: each call alone
	open map[groupKey][]*Group
}

// Add takes a call. Calls come in about the order in which they ended.
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

// ownOf tells apart calls that went through the same without a culprit: what a call did itself, and where its client
// was slow, is no other's. A server's thread is everybody's.
func callerIfOwn(c Call, d Segment) string {
	switch {
	case d.Culprit != "":
		return ""
	case d.State == recording.Exec:
		return c.Client + " " + c.Op
	case d.Actor == recording.Client, d.Actor == recording.Network:
		return c.Caller()
	}
	return ""
}

// overlaps wants half of the shorter wait to be common: a client whose call was held up sends its next one, which the
// next KEYS holds up, before the last reply of the first is sent.
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

// Due gives the groups that are complete at a time, in the order in which their calls began.
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

// Rest gives all that are left.
func (g *Groups) All() []Group { return g.Due(1<<63 - 1) }
