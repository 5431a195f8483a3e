package facts

import (
	"slices"

	"slowpath/internal/recording"
)

const (
	// rowLeast is how many dials one behind the other are no chance.
	rowLeast = 8
	// rowGap is what may lie between two of them, as a part of the one before: a lock that is handed on takes
	// microseconds.
	rowGap = 0.2
	// rowDialNs is the time from which a dial is worth waiting for.
	rowDialNs = int64(1e6)
)

// Stampede is connections that one caller opened together.
type Stampede struct {
	*Caller
	Conns []*Conn
	Row   bool // one after the other
}

// Stampedes are the herds and rows of dials in which callers filled their pools.
func (n *Node) Stampedes(callers []*Caller) []Stampede {
	back := map[*Conn]bool{}
	for _, l := range n.MassLosses(callers) {
		for _, k := range l.Back {
			back[k] = true
		}
	}
	var out []Stampede
	for _, c := range callers {
		var fresh []*Conn
		ended := len(c.ConnsWhere(func(k *Conn) bool {
			return k.By == recording.Client && k.CloseNs > 0 ||
				k.CutNs > 0
		}))
		for _, k := range c.Opened() {
			if !back[k] && !k.Ahead(c.CallNs()) && k.Greeting != nil {
				fresh = append(fresh, k)
			}
		}
		if len(fresh) < rowLeast || 2*ended > len(fresh) {
			continue // they come and go: another habit of the pool, or of jobs
		}
		slices.SortStableFunc(fresh, func(a, b *Conn) int { return int(a.Opening().From - b.Opening().From) })
		out = append(out, c.herdsOf(fresh)...)
		out = append(out, c.rowsOf(fresh)...)
	}
	return out
}

// herdsOf are the groups of connections whose openings overlap.
func (c *Caller) herdsOf(fresh []*Conn) (out []Stampede) {
	var group []*Conn
	until := int64(0)
	flush := func() {
		if len(group) >= HerdLeast && SideBySide(OpeningsOf(group)) >= HerdAtOnce {
			out = append(out, Stampede{Caller: c, Conns: group})
		}
		group = nil
	}
	for _, k := range fresh {
		o := k.Opening()
		if o.From > until {
			flush()
		}
		group, until = append(group, k), max(until, o.To)
	}
	flush()
	return out
}

// rowsOf are the runs of dials of which each began when the one before was done.
func (c *Caller) rowsOf(fresh []*Conn) (out []Stampede) {
	var row []*Conn
	flush := func() {
		if len(row) >= rowLeast {
			out = append(out, Stampede{Caller: c, Conns: row, Row: true})
		}
		row = nil
	}
	for _, k := range fresh {
		if k.DialNs < rowDialNs {
			flush()
			continue
		}
		if last := len(row) - 1; last >= 0 {
			gap := k.OpenNs - k.DialNs - row[last].OpenNs
			if gap < 0 || float64(gap) > rowGap*float64(row[last].DialNs) {
				flush()
			}
		}
		row = append(row, k)
	}
	flush()
	return out
}
