package protocol

import (
	"fmt"
	"math"
	"math/bits"
	"time"
)

// keptBits is the resolution of latencies: the eight leading binary digits of a duration in nanoseconds are kept, the
// others are 0. A value is thus at most 1/128 below the measured one, and all languages compute the same.
const keptBits = 8

// Floor returns the value of the bucket of a duration: v with all but its leading eight binary digits cleared, and 0
// for a negative one.
func Floor(v time.Duration) time.Duration { return bucketValue(bucketIndex(v)) }

// bucketIndex numbers the buckets in the order of their values, without gaps.
func bucketIndex(v time.Duration) int {
	if v < 0 {
		return 0
	}
	shift := max(bits.Len64(uint64(v))-keptBits, 0)
	return shift<<(keptBits-1) + int(v>>shift)
}

func bucketValue(i int) time.Duration {
	shift := max(i>>(keptBits-1)-1, 0)
	return time.Duration(i-shift<<(keptBits-1)) << shift
}

// Bucket is a pair: a duration in nanoseconds, as Floor returns it, and the number of calls that took it.
type Bucket [2]int64

// Histogram is the list of the buckets that are not empty, in the order of durations.
type Histogram []Bucket

// countLimit bounds each count: JSON numbers are exact up to here (IEEE 754), and sums of all buckets stay far from
// overflow.
const countLimit = 1 << 53

// Count is the number of calls.
func (h Histogram) Count() int64 {
	var n int64
	for _, b := range h {
		n += b[1]
	}
	return n
}

// Quantile returns the duration that the share q of the calls did not exceed, at most 1/128 too small; 0 without calls.
func (h Histogram) Quantile(q float64) time.Duration {
	need := int64(math.Ceil(min(max(q, 0), 1) * float64(h.Count())))
	for _, b := range h {
		if need -= b[1]; need <= 0 {
			return time.Duration(b[0])
		}
	}
	return 0
}

// check returns an error for what the protocol does not allow.
func (h Histogram) check() error {
	last, sum := int64(-1), int64(0)
	for _, b := range h {
		switch {
		case b[0] <= last:
			return fmt.Errorf("histogram: %d ns comes after %d ns; values rise", b[0], last)
		case b[0] != int64(Floor(time.Duration(b[0]))):
			return fmt.Errorf("histogram: %d ns has more than %d leading binary digits", b[0], keptBits)
		case b[1] <= 0 || b[1] > countLimit-sum:
			return fmt.Errorf("histogram: %d calls of %d ns", b[1], b[0])
		}
		last, sum = b[0], sum+b[1]
	}
	return nil
}
