package connection

import (
	"cmp"
	"slices"
	"sort"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/recording"
)

// Openings are the times from dial to first command of some connections, sorted by their begin.
func Openings(conns []*caller.Conn) []facts.Span {
	var out []facts.Span
	for _, k := range conns {
		out = append(out, k.Opening())
	}
	slices.SortFunc(out, func(a, b facts.Span) int { return cmp.Compare(a.FromNs, b.FromNs) })
	return out
}

// OpenedForKnownReason are the connections that were opened for a reason that is a fact of its own: others were closed
// by the other end or leaked, or the pool was filled.
func OpenedForKnownReason(n *facts.Node, callers []*caller.Caller) map[*caller.Conn]bool {
	var all []*caller.Conn
	for _, l := range MassDisconnects(n, callers) {
		if len(l.Reopened) >= degree.Many {
			all = append(all, l.Reopened...)
		}
	}
	for _, s := range DialBursts(n, callers) {
		all = append(all, s.Conns...)
	}
	for _, r := range StaleRedials(n, callers) {
		all = append(all, r.Dialled...)
	}
	for _, l := range Leaks(n, callers) {
		all = append(all, l.Dialled...)
	}
	out := map[*caller.Conn]bool{}
	for _, k := range all {
		out[k] = true
	}
	return out
}

// OpenTimes are when connections were opened, by the address of the client's end, in nanoseconds since the Unix epoch,
// in order.
type OpenTimes map[string][]int64

// OpenTimesOf are those that the tap saw at the server's end.
func OpenTimesOf(n *facts.Node) OpenTimes {
	o := OpenTimes{}
	for e := range n.Rec.Conns(n.Address, recording.KindOpen) {
		if e.Side == recording.Server {
			o[e.Client] = append(o[e.Client], e.TimeNs)
		}
	}
	return o
}

// Last is the index of the last one of a client's end before a time; -1 where there is none.
func (o OpenTimes) Last(client string, before int64) int {
	list := o[client]
	return sort.Search(len(list), func(i int) bool { return list[i] > before }) - 1
}

// OpenedJustBefore reports whether a call began on a connection that had been opened less than ns nanoseconds before.
func (o OpenTimes) OpenedJustBefore(c recording.Call, ns int64) bool {
	if c.Source != recording.SourceTap {
		return c.Conn == "fresh"
	}
	at := o.Last(c.Conn, c.EndNs)
	return at >= 0 && o[c.Conn][at] > c.StartNs-ns
}

// IsRefusedDial reports whether a close is that of a connection which could not be made, because the port refused it.
func IsRefusedDial(d recording.ConnDetail) bool {
	return d.Side == recording.Client && d.AgeNs == 0 && d.Reason == recording.CloseRefused
}
