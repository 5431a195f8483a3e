package bench

import (
	"fmt"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// latencies adds up the histograms of all calls and of each op.
func (m *merger) latencies() error {
	var err error
	if m.out.Latency, err = m.histograms(func(r *Result) *Latency { return &r.Latency }); err != nil {
		return err
	}
	if m.out.Service, err = m.histograms(func(r *Result) *Latency { return &r.Service }); err != nil {
		return err
	}
	for _, name := range m.opNames() {
		find := func(r *Result) *Op {
			if i := slices.IndexFunc(r.Ops, func(o Op) bool { return o.Op == name }); i >= 0 {
				return &r.Ops[i]
			}
			return nil
		}
		op := Op{Op: name}
		for _, p := range m.parts {
			if o := find(p.Result); o != nil {
				op.Ratio = max(op.Ratio, o.Ratio)
				op.Requests += o.Requests
				op.Errors += o.Errors
				op.Misses += o.Misses
			}
		}
		if m.out.Requests > 0 {
			op.RequestsPerSecond = m.out.RequestsPerSecond * float64(op.Requests) / float64(m.out.Requests)
		}
		part := func(pick func(*Op) *Latency) func(*Result) *Latency {
			return func(r *Result) *Latency {
				if o := find(r); o != nil {
					return pick(o)
				}
				return nil
			}
		}
		if op.Latency, err = m.histograms(part(func(o *Op) *Latency { return &o.Latency })); err != nil {
			return err
		}
		if op.Service, err = m.histograms(part(func(o *Op) *Latency { return &o.Service })); err != nil {
			return err
		}
		m.out.Ops = append(m.out.Ops, op)
	}
	return nil
}

func (m *merger) opNames() []string {
	var names []string
	for _, p := range m.parts {
		for _, o := range p.Result.Ops {
			if !slices.Contains(names, o.Op) {
				names = append(names, o.Op)
			}
		}
	}
	return names
}

// histograms adds up one histogram of each part; pick gives nil where a part has none.
func (m *merger) histograms(pick func(*Result) *Latency) (Latency, error) {
	var sum *hdrhistogram.Histogram
	for _, p := range m.parts {
		l := pick(p.Result)
		if l == nil {
			continue
		}
		h, err := l.Histogram()
		if err != nil {
			return Latency{}, fmt.Errorf("%s: %w", p.Name, err)
		}
		switch {
		case sum == nil:
			sum = h
		case h.HighestTrackableValue() != sum.HighestTrackableValue() ||
			h.SignificantFigures() != sum.SignificantFigures() ||
			h.LowestTrackableValue() != sum.LowestTrackableValue():
			return Latency{}, fmt.Errorf("%s %w", p.Name, ErrScale)
		default:
			sum.Merge(h)
		}
	}
	return latencyOf(sum)
}
