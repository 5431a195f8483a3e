package facts

import "sort"

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
	sort.Slice(ns, func(i, j int) bool { return ns[i] < ns[j] })
	at := func(q int) int64 { return ns[(len(ns)-1)*q/100] }
	return Percentiles{at(10), at(50), at(90)}
}
