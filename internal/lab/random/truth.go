package random

import (
	"cmp"
	"math"
	"slices"

	"slowpath/internal/lab/incident"
	"slowpath/internal/stats"
)

// Cost is what a fault cost the callers, by turns with and without it.
type Cost struct {
	Cause string `json:"cause"`
	// CostNs is the time by which an operation took longer, by the median of Hodges and Lehmann; it lies in Interval.
	CostNs   float64    `json:"cost_ns"`
	Interval [2]float64 `json:"interval"` // at 95 %, in nanoseconds
	P        float64    `json:"p"`        // of no cost, by Wilcoxon's signed ranks
	Pairs    int        `json:"pairs"`    // of turns
	Hurts    bool       `json:"hurts"`    // the interval is above 0
}

// Truth is a cause that cost the callers time.
type Truth struct {
	Cause    string     `json:"cause"` // or healthy, where no fault did
	CostNs   float64    `json:"cost_ns"`
	Share    float64    `json:"share"` // of the time that all faults together cost
	Interval [2]float64 `json:"interval"`
}

// costs tests each fault. Without faults there is one result, of turns that differ in nothing: it shows how often the
// test is wrong.
func costs(faults []Fault, turns []Turn) []Cost {
	causes := []string{incident.HealthyCause}
	if len(faults) > 0 {
		causes = nil
		for _, f := range faults {
			causes = append(causes, f.Cause)
		}
	}
	var out []Cost
	for i, cause := range causes {
		p := stats.ComparePairs(differences(turns, len(faults), i))
		out = append(out, Cost{
			Cause: cause, CostNs: p.Shift, Interval: [2]float64{finite(p.Low), finite(p.High)}, P: p.P, Pairs: p.Pairs,
			Hurts: p.Low > 0,
		})
	}
	return out
}

// truth are the faults that hurt, the most expensive first.
func truth(costs []Cost) []Truth {
	var out []Truth
	sum := 0.0
	for _, c := range costs {
		if c.Hurts && c.Cause != incident.HealthyCause {
			out = append(out, Truth{Cause: c.Cause, CostNs: c.CostNs, Interval: c.Interval})
			sum += c.CostNs
		}
	}
	if len(out) == 0 {
		return []Truth{{Cause: incident.HealthyCause}}
	}
	for i := range out {
		out[i].Share = out[i].CostNs / sum
	}
	slices.SortStableFunc(out, func(a, b Truth) int { return cmp.Compare(b.CostNs, a.CostNs) })
	return out
}

// finite replaces an open end by 0: JSON has no infinity. Such an interval comes with too few pairs only.
func finite(v float64) float64 {
	if math.IsInf(v, 0) {
		return 0
	}
	return v
}
