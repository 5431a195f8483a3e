package facts

import "slices"

// Percentiles are the 10th, the 50th and the 90th percentile of some values.
type Percentiles struct {
	// P10 is the value that 10 % do not exceed.
	P10 int64
	// Median is the value that half of them do not exceed.
	Median int64
	// P90 is the value that 90 % do not exceed.
	P90 int64
}

// PercentilesOfNs are those of some values, which it sorts; zeros for none.
func PercentilesOfNs(ns []int64) Percentiles {
	if len(ns) == 0 {
		return Percentiles{}
	}
	slices.Sort(ns)
	at := func(q int) int64 { return ns[(len(ns)-1)*q/100] }
	return Percentiles{at(10), at(50), at(90)}
}
