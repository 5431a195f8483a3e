package recording

import "math"

// ExponentialScale is the resolution of histograms for others, as OpenTelemetry counts it: buckets are 2^(2^-3), 9 %
// wide.
const ExponentialScale = 3

// ExponentialBucket is the bucket of a time, which is more than 0: bucket i has those above 2^(i/8) seconds, up to
// 2^((i+1)/8).
func ExponentialBucket(seconds float64) int32 {
	return int32(math.Ceil(math.Ldexp(math.Log2(seconds), ExponentialScale))) - 1
}
