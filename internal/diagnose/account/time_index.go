package account

import "slices"

// timeIndex finds the items that overlap a time without going through all of them: a recording of hours has hundreds of
// thousands of calls and of events.
type timeIndex struct {
	buckets map[int64][]int // by second: the items that touch it, in order
	long    []int           // items that touch more than maxBuckets
	items   int
}

const (
	// Bound: arithmetic, the size of a bucket of an index.
	bucketNs = int64(1e9)
	// maxBuckets is how many buckets an item is put into.
	// Bound: arithmetic, it bounds the size of the index.
	maxBuckets = 64
)

func newTimeIndex(n int, span func(i int) (fromNs, toNs int64)) *timeIndex {
	x := &timeIndex{buckets: map[int64][]int{}, items: n}
	for i := range n {
		from, to := span(i)
		if to/bucketNs-from/bucketNs >= maxBuckets {
			x.long = append(x.long, i)
			continue
		}
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
	first, last := fromNs/bucketNs, toNs/bucketNs
	out := slices.Clone(x.long)
	if last-first > int64(len(x.buckets)) { // most of them
		out = out[:0]
		for i := range x.items {
			out = append(out, i)
		}
		return out
	}
	for b := first; b <= last; b++ {
		out = append(out, x.buckets[b]...)
	}
	if first != last || len(x.long) > 0 {
		slices.Sort(out)
		out = slices.Compact(out)
	}
	return out
}
