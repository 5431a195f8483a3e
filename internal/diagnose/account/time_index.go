package account

import (
	"cmp"
	"math"
	"slices"
)

// timeIndex finds the items that overlap a time without going through all of them: a recording of hours has hundreds of
// thousands of calls and of events. It is a balanced tree over the items in the order of their begin: the middle of
// each part is its root.
type timeIndex struct {
	items  []indexed
	latest []int64 // by root, the latest end in its part
}

type indexed struct {
	fromNs, toNs int64
	item         int
}

func newTimeIndex(n int, span func(i int) (fromNs, toNs int64)) *timeIndex {
	x := &timeIndex{make([]indexed, n), make([]int64, n)}
	for i := range n {
		from, to := span(i)
		x.items[i] = indexed{from, to, i}
	}
	slices.SortStableFunc(x.items, func(a, b indexed) int { return cmp.Compare(a.fromNs, b.fromNs) })
	x.build(0, n)
	return x
}

// build notes the latest end of a part, and of those that it has.
func (x *timeIndex) build(first, after int) (latest int64) {
	if first == after {
		return math.MinInt64
	}
	root := (first + after) / 2
	x.latest[root] = max(x.items[root].toNs, x.build(first, root), x.build(root+1, after))
	return x.latest[root]
}

// touching lists the items that begin by toNs and end at fromNs or later, in the order of their indexes.
func (x *timeIndex) touching(fromNs, toNs int64) (out []int) {
	if x == nil {
		return nil
	}
	var visit func(first, after int)
	visit = func(first, after int) {
		root := (first + after) / 2
		if first == after || x.latest[root] < fromNs {
			return
		}
		visit(first, root)
		if at := x.items[root]; at.fromNs <= toNs {
			if at.toNs >= fromNs {
				out = append(out, at.item)
			}
			visit(root+1, after)
		}
	}
	visit(0, len(x.items))
	slices.Sort(out)
	return out
}
