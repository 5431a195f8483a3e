package experiment

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"slowpath/internal/stats"
)

// RepeatsSchema is that of Repeats.
const RepeatsSchema = "slowpath.repeats/v1"

// Repeats are loads that are all the same, the document slowpath.repeats/v1 (docs/json.md).
type Repeats struct {
	Schema string `json:"schema"`
	Setup
	Interrupted bool        `json:"interrupted"`
	Metrics     []Metric    `json:"figures"`
	Runs        []Run       `json:"runs"`
	Comparison  *Comparison `json:"comparison,omitempty"`
	Summary     string      `json:"summary"` // for people
	Notes       []string    `json:"notes"`
}

// Metric is the median of a figure over the repeats.
type Metric struct {
	Name string   `json:"figure"` // as in Run; latencies end in _ns
	Median Estimate `json:"median"` // null bounds: too few repeats for an interval
	// Drifts: it rose or fell from the first repeat to the last more than chance does.
	Drifts bool `json:"drifts"`
}

// metric is a figure of a load that tells fast from slow.
type metric struct {
	name   string
	higher bool // is better
	of     func(Run) float64
}

// metricsOf are the figures that can differ. The throughput of an open loop is what was asked for.
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
	Baseline *Baseline // nil: nothing to compare with
	// Load makes one load.
	Load func(ctx context.Context) (Run, error)
	// Progress, if set, is told before each load which it is, from 1.
	Progress func(n int)
}

// MakeRepeats makes the loads. When ctx ends, those that are there by then are the result; none is an error.
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
	s.Summary = s.sentence()
	return s, nil
}

func (s *Repeats) note(o RepeatsOptions) {
	note := func(format string, args ...any) { s.Notes = append(s.Notes, fmt.Sprintf(format, args...)) }
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
		note("In %d of %d loads the generator was the limit: the server may do more.", limited, len(s.Runs))
	}
}

func (s *Repeats) sentence() string {
	if s.Comparison != nil {
		return s.Comparison.Sentence
	}
	latencies := medianLatency(s.Runs, func(r Run) Latency { return r.Latency })
	speed := stats.Median(each(s.Runs, func(r Run) float64 { return r.RequestsPerSecond }))
	return fmt.Sprintf("Medians of %d loads: %s requests per second, p50 %s, p99 %s, p99.9 %s.", len(s.Runs),
		thousands(speed), brief(latencies.P50Ns), brief(latencies.P99Ns),
		brief(latencies.P999Ns))
}
