package facts

import "sort"

// Spread is the 10th, 50th and 90th of a hundred values.
type Percentiles struct{ P10, Median, P90 int64 }

func PercentilesOf(conns []*Conn, of func(*Conn) int64) Percentiles {
	var ns []int64
	for _, c := range conns {
		ns = append(ns, of(c))
	}
	return PercentilesOfNs(ns)
}

func PercentilesOfNs(ns []int64) Percentiles {
	if len(ns) == 0 {
		return Percentiles{}
	}
	sort.Slice(ns, func(i, j int) bool { return ns[i] < ns[j] })
	at := func(q int) int64 { return ns[(len(ns)-1)*q/100] }
	return Percentiles{at(10), at(50), at(90)}
}
