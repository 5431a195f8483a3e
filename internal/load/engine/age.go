package engine

import "github.com/HdrHistogram/hdrhistogram-go"

// age counts a call without reply.
func (t *Tally) age(to **hdrhistogram.Histogram, ns int64) {
	if *to == nil {
		*to = NewHistogram()
	}
	_ = (*to).RecordValue(min(max(ns, 0), longest)) // in range
}
