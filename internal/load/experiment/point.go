package experiment

import (
	"slices"

	"slowpath/internal/stats"
)

func pointOf(value int, runs []Run) Point {
	p := Point{Value: value, Runs: runs}
	limited, by := 0, map[string]int{}
	for _, r := range runs {
		if r.GeneratorLimited {
			limited++
		}
		if by[r.LimitedBy]++; 2*by[r.LimitedBy] > len(runs) {
			p.LimitedBy = r.LimitedBy
		}
	}
	p.GeneratorLimited = 2*limited > len(runs)
	p.summarise(p.validRuns())
	return p
}

// validRuns are the loads that the generator did not limit, or all where it limited most.
func (p *Point) validRuns() (out []Run) {
	if p.GeneratorLimited {
		return p.Runs
	}
	for _, r := range p.Runs {
		if !r.GeneratorLimited {
			out = append(out, r)
		}
	}
	return out
}

func (p *Point) summarise(runs []Run) {
	speeds := each(runs, func(r Run) float64 { return r.RequestsPerSecond })
	p.RequestsPerSecond, p.Low, p.High = stats.Median(speeds), slices.Min(speeds), slices.Max(speeds)
	p.ErrorShare = stats.Median(each(runs, func(r Run) float64 { return r.ErrorShare }))
	p.Latency = medianLatency(runs, func(r Run) Latency { return r.Latency })
}

// medianLatency takes the median of each quantile by itself.
func medianLatency(runs []Run, of func(Run) Latency) Latency {
	m := func(ns func(Latency) int64) int64 {
		return stats.Median(each(runs, func(r Run) int64 { return ns(of(r)) }))
	}
	return Latency{
		MeanNs: m(func(l Latency) int64 { return l.MeanNs }), P50Ns: m(func(l Latency) int64 { return l.P50Ns }),
		P90Ns: m(func(l Latency) int64 { return l.P90Ns }),
		P99Ns: m(func(l Latency) int64 { return l.P99Ns }), P999Ns: m(func(l Latency) int64 { return l.P999Ns }),
		P9999Ns: m(func(l Latency) int64 { return l.P9999Ns }), MaxNs: m(func(l Latency) int64 { return l.MaxNs }),
	}
}

func each[T any](runs []Run, of func(Run) T) []T {
	out := make([]T, len(runs))
	for i, r := range runs {
		out[i] = of(r)
	}
	return out
}
