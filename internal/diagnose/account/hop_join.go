package account

import (
	"cmp"
	"slices"
	"strings"

	"slowpath/internal/recording"
)

// join finds for each slow call of a proxy the call at the proxy before, of which it is a part: one of the same command
// that was under way all the time, and as little longer as any. Where a proxy waited, it calls only one node, and no
// slow call of its own is known, implied makes one; nil: none.
func (h *hops) join(slow []Account, implied func(at string, of Account, s Segment) (Account, bool)) []Account {
	depth := h.depths()
	var proxies []string
	for node := range h.next {
		proxies = append(proxies, node)
	}
	slices.SortFunc(proxies, func(a, b string) int {
		return cmp.Or(depth[a]-depth[b], strings.Compare(a, b))
	})
	for _, proxy := range proxies {
		h.joinAt(proxy, slow)
		for i := 0; i < len(slow) && len(h.next[proxy]) == 1; i++ {
			if slow[i].Call.Node != proxy {
				continue
			}
			for next := range h.next[proxy] {
				for _, s := range slices.Clone(slow[i].Segments) {
					if a, ok := implied(next, slow[i], s); ok && isPassedOn(s) {
						a.outer = i + 1
						slow[i].inner = append(slow[i].inner, len(slow))
						slow[i].forwards(a.Call)
						slow = append(slow, a)
					}
				}
			}
		}
	}
	return inOrder(slow)
}

// joinAt joins the calls that a proxy made with those that it got.
func (h *hops) joinAt(proxy string, slow []Account) {
	var got []int
	for i := range slow {
		if slow[i].Call.Node == proxy {
			got = append(got, i)
		}
	}
	index := newTimeIndex(len(got), func(i int) (int64, int64) {
		return slow[got[i]].Call.IntendedNs, slow[got[i]].Call.EndNs
	})
	taken := map[innerOf]bool{}
	for i, a := range slow {
		if a.Call.Source != recording.SourceTap || h.caller(&a.Call) != proxy || !h.next[proxy][a.Call.Node] {
			continue
		}
		best, slack := -1, int64(0)
		for _, k := range index.touching(a.Call.IntendedNs, a.Call.EndNs) {
			of := slow[got[k]].Call
			before, after := a.Call.IntendedNs-of.StartNs, of.EndNs-a.Call.EndNs
			if before > 0 && after >= 0 && !taken[innerOf{got[k], a.Call.Node}] && sameOp(a.Call.Op, of.Op) &&
				(best < 0 || before+after < slack) {
				best, slack = got[k], before+after
			}
		}
		if best >= 0 {
			slow[i].outer = best + 1
			taken[innerOf{best, a.Call.Node}] = true
			slow[best].inner = append(slow[best].inner, i)
			slow[best].forwards(a.Call)
		}
	}
}

// inOrder puts accounts in the order of time again.
func inOrder(slow []Account) []Account {
	order := make([]int, len(slow))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(slow[a].Call.IntendedNs, slow[b].Call.IntendedNs)
	})
	at := make([]int, len(slow))
	for now, before := range order {
		at[before] = now
	}
	out := make([]Account, len(slow))
	for now, before := range order {
		a := slow[before]
		if a.IsPart() {
			a.outer = at[a.outer-1] + 1
		}
		for k, i := range a.inner {
			a.inner[k] = at[i]
		}
		out[now] = a
	}
	return out
}

// forwards books the open time in which a call at a proxy waited for one that the proxy made.
func (a *Account) forwards(inner recording.Call) {
	t := timeline{segs: a.Segments}
	t.put(Segment{
		recording.Proxy, recording.Forward, inner.IntendedNs, inner.EndNs, inner.Node, -1,
	}, isPassedOn)
	a.Segments = t.segs
}

// isPassedOn: time of a call at a proxy in which that may have waited for the next node.
func isPassedOn(s Segment) bool {
	return s.State == Unexplained || s.State == Withheld || s.State == recording.Forward && s.Culprit == ""
}

// innerOf is that a part of a call at a proxy went to a node.
type innerOf struct {
	outer int
	node  string
}

// HopSegment is a segment and the node where that time passed: of a proxy's calls to the next node the proxy's own part
// is at the proxy, the way and the rest at the next.
type HopSegment struct {
	Segment
	Node string
}

// Whole are the segments of a slow call, with those of the calls that proxies made for it in the place of the time in
// which the proxies waited. What a proxy did is the proxy's, and no server's or client's.
func (l *Ledger) Whole(i int) []HopSegment {
	a := &l.Slow[i]
	out := make([]HopSegment, 0, len(a.Segments))
	for _, s := range a.Segments {
		if s.Actor == Server && l.IsProxy(a.Call.Node) {
			s.Actor = recording.Proxy
		}
		out = append(out, HopSegment{s, a.Call.Node})
	}
	for _, k := range a.inner {
		part := l.Whole(k)
		for j := range part {
			if s := &part[j]; s.Node == l.Slow[k].Call.Node && (s.Actor == Client || s.Actor == App) {
				s.Actor, s.Node = recording.Proxy, a.Call.Node
			}
		}
		out = within(out, part, l.Slow[k].Call.Node)
	}
	return out
}

// ActorInWhole is the actor in Whole of what the account of slow call i has as an actor's.
func (l *Ledger) ActorInWhole(i int, actor string) string {
	a := &l.Slow[i]
	if actor == Server && l.IsProxy(a.Call.Node) || a.IsPart() && (actor == Client || actor == App) {
		return recording.Proxy
	}
	return actor
}

// within puts the parts of a call that a proxy made to a node where the proxy waited for that.
func within(outer, part []HopSegment, node string) (out []HopSegment) {
	for _, g := range outer {
		waits := g.Actor == recording.Proxy && g.State == recording.Forward && g.Culprit == node
		at := g.FromNs
		for _, s := range part {
			from, to := max(s.FromNs, at), min(s.ToNs, g.ToNs)
			if !waits || from >= to {
				continue
			}
			if from > at {
				out = append(out, HopSegment{cut(g.Segment, at, from), g.Node})
			}
			out, at = append(out, HopSegment{cut(s.Segment, from, to), s.Node}), to
		}
		if at < g.ToNs {
			out = append(out, HopSegment{cut(g.Segment, at, g.ToNs), g.Node})
		}
	}
	return out
}
