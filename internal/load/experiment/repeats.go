package experiment

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"slowpath/internal/format"

	"slowpath/internal/stats"
)

// RepeatsSchema is that of Repeats.
const RepeatsSchema = "slowpath.repeats/v1"

// Repeats are loads with the same settings, the document slowpath.repeats/v1 (docs/json.md).
type Repeats struct {
	Schema string `json:"schema"`
	Setup
	Interrupted bool        `json:"interrupted"`
	Metrics     []Metric    `json:"figures"`
	Runs        []Run       `json:"runs"`
	Comparison  *Comparison `json:"comparison,omitempty"`
	Checks      []Check     `json:"checks,omitempty"` // the bounds of --fail-if
	Summary     string      `json:"summary"`          // in one sentence
	Notes       []string    `json:"notes"`
}

// Metric is the median of a metric over the repeats.
type Metric struct {
	Name   string   `json:"figure"` // as in Run; latencies end in _ns
	Median Estimate `json:"median"` // null bounds: too few repeats for an interval
	// Drifts: it rose or fell from the first repeat to the last, more than chance explains.
	Drifts bool `json:"drifts"`
}

// metric is a number of a load that tells fast from slow.
type metric struct {
	name   string
	higher bool // is better
	of     func(Run) float64
}

// metricsOf are the metrics that are compared. The throughput of an open loop is what was asked for.
func metricsOf(open bool) []metric {
	figures := []metric{
		{"p50_ns", false, func(r Run) float64 { return float64(r.Latency.P50Ns) }},
		{"p99_ns", false, func(r Run) float64 { return float64(r.Latency.P99Ns) }},
		{"p999_ns", false, func(r Run) float64 { return float64(r.Latency.P999Ns) }},
		{"cpu_seconds_per_million_requests", false, func(r Run) float64 { return r.CPUSecondsPerMillion }},
	}
	if open {
		return figures
	}
	return append([]metric{{"requests_per_second", true, func(r Run) float64 { return r.RequestsPerSecond }}},
		figures...)
}

// RepeatsOptions say what is repeated.
type RepeatsOptions struct {
	Setup    Setup
	Repeats  int // at least 1
	Open     bool
	Baseline *Baseline // nil: no comparison
	FailIf   []FailIf
	// Load makes one load.
	Load func(ctx context.Context) (Run, error)
	// Progress, if set, is called before each load with its number, from 1.
	Progress func(n int)
}

// MakeRepeats makes the loads. When ctx ends, the loads so far are the result; without any it is an error.
func MakeRepeats(ctx context.Context, o RepeatsOptions) (*Repeats, error) {
	s := &Repeats{Schema: RepeatsSchema, Setup: o.Setup, Runs: []Run{}, Notes: []string{}}
	for n := range o.Repeats {
		if o.Progress != nil {
			o.Progress(n + 1)
		}
		r, err := o.Load(ctx)
		if ctx.Err() != nil {
			s.Interrupted = true
			break
		}
		if err != nil {
			return nil, err
		}
		r.Order = n + 1
		s.Runs = append(s.Runs, r)
	}
	if len(s.Runs) == 0 {
		return nil, errors.Join(errors.New("no load was finished"), ctx.Err())
	}
	for _, f := range metricsOf(o.Open) {
		values := each(s.Runs, f.of)
		m := stats.EstimateMedian(values)
		s.Metrics = append(s.Metrics, Metric{f.name, estimate(m.Value, m.Low, m.High), stats.Drifts(values)})
	}
	s.note(o)
	if o.Baseline != nil {
		s.Comparison = o.Baseline.compare(s, o.Open)
	}
	for _, f := range o.FailIf {
		s.Checks = append(s.Checks, f.Check(false, s.Runs...))
	}
	s.Summary = s.sentence()
	return s, nil
}

func (s *Repeats) note(o RepeatsOptions) {
	note := func(sentence string, args ...any) { s.Notes = append(s.Notes, fmt.Sprintf(sentence, args...)) }
	if s.Interrupted {
		note("Ended early: %d of %d loads.", len(s.Runs), o.Repeats)
	}
	if n := len(s.Runs); n < stats.RepeatsForInterval && o.Baseline == nil {
		note("%d repeats have no 95 %% interval of their median; %d have.", n, stats.RepeatsForInterval)
	}
	var drift []string
	for _, f := range s.Metrics {
		if f.Drifts {
			drift = append(drift, f.Name)
		}
	}
	if len(drift) > 0 {
		note("The machine was not steady: %s rose or fell from the first load to the last.", strings.Join(drift, ", "))
	}
	limited := 0
	for _, r := range s.Runs {
		if r.GeneratorLimited {
			limited++
		}
	}
	if limited > 0 {
		note("In %d of %d loads the generator was the bottleneck: the server may do more.", limited, len(s.Runs))
	}
}

func (s *Repeats) sentence() string {
	if s.Comparison != nil {
		return s.Comparison.Sentence
	}
	latencies := medianLatency(s.Runs, func(r Run) Latency { return r.Latency })
	speed := stats.Median(each(s.Runs, func(r Run) float64 { return r.RequestsPerSecond }))
	return fmt.Sprintf("Medians of %d loads: %s requests per second, p50 %s, p99 %s, p99.9 %s.", len(s.Runs),
		format.Rounded(speed), format.Brief(latencies.P50Ns), format.Brief(latencies.P99Ns),
		format.Brief(latencies.P999Ns))
}
