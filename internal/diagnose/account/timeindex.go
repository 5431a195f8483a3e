package account

import "slices"

// timeIndex finds the spans that overlap a time without looking at all of them: a recording of hours has hundreds of
// thousands of calls and of events.
type timeIndex struct {
	buckets map[int64][]int // by second: the items that touch it, in order
	seen    []int           // by item: the lookup that last returned it
	lookup  int
}

const bucketNs = int64(1e9)

func newTimeIndex(n int, span func(i int) (fromNs, toNs int64)) *timeIndex {
	x := &timeIndex{buckets: map[int64][]int{}, seen: make([]int, n)}
	for i := range n {
		from, to := span(i)
		for b := from / bucketNs; b <= to/bucketNs; b++ {
			x.buckets[b] = append(x.buckets[b], i)
		}
	}
	return x
}

// touching lists the items that may overlap [fromNs, toNs), each once, in the order of their indexes.
func (x *timeIndex) touching(fromNs, toNs int64) []int {
	if x == nil {
		return nil
	}
	x.lookup++
	var out []int
	for b := fromNs / bucketNs; b <= toNs/bucketNs; b++ {
		for _, i := range x.buckets[b] {
			if x.seen[i] != x.lookup {
				x.seen[i] = x.lookup
				out = append(out, i)
			}
		}
	}
	slices.Sort(out)
	return out
}
