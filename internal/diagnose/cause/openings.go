package cause

import (
	"cmp"
	"slices"
	"sort"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
)

// opening is the time from the dial of a connection to its first command that does work.
func (k *Conn) opening() span {
	from := k.OpenNs - k.DialNs
	to := from + max(k.openingNs(), 1)
	if k.Greeting == nil {
		to = max(to, k.IntroNs)
	}
	return span{from, to}
}

// openingsOf are those of some connections, the first to begin first.
func openingsOf(conns []*Conn) []span {
	var out []span
	for _, k := range conns {
		out = append(out, k.opening())
	}
	slices.SortFunc(out, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	return out
}

// sideBySide is how many of some stretches of time overlap, at most.
func sideBySide(list []span) (most int) {
	var ends []int64
	for _, s := range list { // they are sorted by their begin
		ends = slices.DeleteFunc(ends, func(to int64) bool { return to <= s.from })
		ends = append(ends, s.to)
		most = max(most, len(ends))
	}
	return most
}

// A herd is at least so many connections that one reason makes be opened together, and so many of them at the same
// moment. A pool that grows with its traffic opens a few.
const (
	herdLeast  = 20
	herdAtOnce = 8
)

// medianOf is the middle of some values; 0 of none.
func medianOf(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

// driven are the connections that were opened for a reason that has a name of its own: others were taken away or not
// given back, or the pool was cold.
func (n *Node) driven(callers []*Caller) map[*Conn]bool {
	out := map[*Conn]bool{}
	mark := func(conns []*Conn) {
		for _, k := range conns {
			out[k] = true
		}
	}
	for _, l := range n.lossesAtOnce(callers) {
		if len(l.back) >= herdLeast {
			mark(l.back)
		}
	}
	for _, s := range n.stampedes(callers) {
		mark(s.conns)
	}
	for _, r := range n.stale(callers) {
		mark(r.fresh)
	}
	for _, l := range n.leaks(callers) {
		mark(l.fresh)
	}
	return out
}

// openedTogether starts the finding of a cause by which many connections were opened together in some spells: cost is
// what calls waited for them, openingNs what one took. It is nil where nobody can have noticed. Slow calls in the
// spells are a part of it: they are those of handshakes, and those that waited behind them.
func (n *Node) openedTogether(callers []*Caller, spells spans, cost, openingNs int64, confidence float64) (*Finding,
	Claim,
) {
	meanwhile := func(a account.Account) int64 { return spells.in(a.Call.IntendedNs, a.Call.EndNs) }
	felt, users := n.claimOf(meanwhile), n.tapClaim(meanwhile)
	l := n.losses(callers)
	took := cost + users.Ns
	many := float64(users.Users.Calls) > healthyMaxShare*float64(users.Users.Of)
	if float64(took) < minShare*float64(l.spentNs) && max(openingNs, felt.MaxNs) < healthyMaxNs && !many {
		return nil, felt
	}
	f := n.finding(felt, confidence)
	f.SlowCalls = 0 // most of what it costs is before the calls
	all := l.openingNs + l.givenUpNs + l.pingNs + l.excessNs
	f.ExcessShare = max(f.ExcessShare, min(1, float64(took)/float64(max(all, 1))))
	return f, felt
}

// openTimes are the moments at which connections were opened, by the client's end, the first one first.
type openTimes map[string][]int64

func (n *Node) openTimes() openTimes {
	o := openTimes{}
	for _, e := range n.Events(recording.SourceTap, recording.KindOpen) {
		if d := recording.DetailOf[recording.ConnDetail](e); d.Side == recording.Server {
			o[d.Client] = append(o[d.Client], e.TimeNs)
		}
	}
	return o
}

// last is the place of the last of an end before a moment; -1 where there is none.
func (o openTimes) last(client string, before int64) int {
	list := o[client]
	return sort.Search(len(list), func(i int) bool { return list[i] > before }) - 1
}

// within reports whether a call began on a connection that had been opened so little before.
func (o openTimes) within(c recording.Call, ns int64) bool {
	if c.Source != recording.SourceTap {
		return c.Conn == "fresh"
	}
	at := o.last(c.Conn, c.EndNs)
	return at >= 0 && o[c.Conn][at] > c.StartNs-ns
}
