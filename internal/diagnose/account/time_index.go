package account

import "slices"

// timeIndex finds the items that overlap a time without going through all of them: a recording of hours has hundreds of
// thousands of calls and of events.
type timeIndex struct {
	buckets map[int64][]int // by second: the items that touch it, in order
}

// Bound: arithmetic, the size of a bucket of an index.
const bucketNs = int64(1e9)

func newTimeIndex(n int, span func(i int) (fromNs, toNs int64)) *timeIndex {
	x := &timeIndex{buckets: map[int64][]int{}}
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
	var out []int
	for b := fromNs / bucketNs; b <= toNs/bucketNs; b++ {
		out = append(out, x.buckets[b]...)
	}
	if fromNs/bucketNs != toNs/bucketNs {
		slices.Sort(out)
		out = slices.Compact(out)
	}
	return out
}
