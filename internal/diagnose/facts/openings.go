package facts

import (
	"cmp"
	"slices"
	"sort"

	"slowpath/internal/recording"
)

// OpeningsOf are those of some connections, the first to begin first.
func Openings(conns []*Conn) []Span {
	var out []Span
	for _, k := range conns {
		out = append(out, k.Opening())
	}
	slices.SortFunc(out, func(a, b Span) int { return cmp.Compare(a.FromNs, b.FromNs) })
	return out
}

// A herd is at least so many connections that one reason makes be opened together, and so many of them at the same
// moment. A pool that grows with its traffic opens a few.
const (
	MinHerd           = 20
	MinHerdConcurrent = 8
)

// Driven are the connections that were opened for a reason that has a name of its own: others were taken away or not
// given back, or the pool was cold.
func (n *Node) OpenedForKnownReason(callers []*Caller) map[*Conn]bool {
	out := map[*Conn]bool{}
	mark := func(conns []*Conn) {
		for _, k := range conns {
			out[k] = true
		}
	}
	for _, l := range n.MassDisconnects(callers) {
		if len(l.Reopened) >= MinHerd {
			mark(l.Reopened)
		}
	}
	for _, s := range n.DialBursts(callers) {
		mark(s.Conns)
	}
	for _, r := range n.StaleRedials(callers) {
		mark(r.Dialled)
	}
	for _, l := range n.Leaks(callers) {
		mark(l.Dialled)
	}
	return out
}

// openTimes are the moments at which connections were opened, by the client's end, the first one first.
type OpenTimes map[string][]int64

func (n *Node) OpenTimes() OpenTimes {
	o := OpenTimes{}
	for _, e := range n.Events(recording.SourceTap, recording.KindOpen) {
		if d := recording.DetailOf[recording.ConnDetail](e); d.Side == recording.Server {
			o[d.Client] = append(o[d.Client], e.TimeNs)
		}
	}
	return o
}

// last is the place of the last of an end before a moment; -1 where there is none.
func (o OpenTimes) last(client string, before int64) int {
	list := o[client]
	return sort.Search(len(list), func(i int) bool { return list[i] > before }) - 1
}

// Within reports whether a call began on a connection that had been opened so little before.
func (o OpenTimes) OpenedJustBefore(c recording.Call, ns int64) bool {
	if c.Source != recording.SourceTap {
		return c.Conn == "fresh"
	}
	at := o.last(c.Conn, c.EndNs)
	return at >= 0 && o[c.Conn][at] > c.StartNs-ns
}
