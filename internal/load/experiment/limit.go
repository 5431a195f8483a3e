package experiment

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"slowpath/internal/format"
)

// Limit is what a load must hold: all of its bounds.
type Limit []Bound

// Bound is a metric that must stay below a value.
type Bound struct {
	Metric string        // a name of quantiles, or ErrorsMetric
	Below  time.Duration // of a latency
	Share  float64       // of errors, from 0 to 1
}

// ErrorsMetric is the share of calls that failed.
const ErrorsMetric = "errors"

// quantile is a metric of latencies.
type quantile struct {
	of    func(Latency) int64
	late  func(Run) int64 // how late the generator itself was at that quantile, or above
	above float64         // share of the calls that lie above it
}

var (
	lateP50 = func(r Run) int64 { return r.LateP50Ns }
	lateP99 = func(r Run) int64 { return r.LateP99Ns }
	lateMax = func(r Run) int64 { return r.LateMaxNs }
)

var quantiles = map[string]quantile{
	"mean":  {func(l Latency) int64 { return l.MeanNs }, lateP99, 0.5},
	"p50":   {func(l Latency) int64 { return l.P50Ns }, lateP50, 0.5},
	"p90":   {func(l Latency) int64 { return l.P90Ns }, lateP99, 0.1},
	"p99":   {func(l Latency) int64 { return l.P99Ns }, lateP99, 0.01},
	"p999":  {func(l Latency) int64 { return l.P999Ns }, lateMax, 0.001},
	"p9999": {func(l Latency) int64 { return l.P9999Ns }, lateMax, 0.0001},
	"max":   {func(l Latency) int64 { return l.MaxNs }, lateMax, 0},
}

var limitWords = regexp.MustCompile(`\s*(?:,|\s[aA][nN][dD]\s)\s*`)

// ParseLimit reads bounds such as "p99<1ms and errors<0.1%", joined by "and" or commas. Metrics are p50, p90, p99,
// p999, p9999 (also p99.9, p99.99), mean and max, with a duration, and errors, with a share.
func ParseLimit(s string) (Limit, error) {
	var l Limit
	for _, text := range limitWords.Split(strings.TrimSpace(s), -1) {
		b, err := parseBound(text)
		if err != nil {
			return nil, fmt.Errorf("%.60q: %w", text, err)
		}
		l = append(l, b)
	}
	return l, nil
}

var errBound = errors.New("give bounds such as p99<1ms, max<20ms or errors<0.1%")

func parseBound(s string) (Bound, error) {
	name, value, ok := strings.Cut(s, "<")
	name, value = strings.TrimSpace(name), strings.TrimSpace(strings.TrimPrefix(value, "="))
	b := Bound{Metric: strings.ReplaceAll(name, ".", "")}
	switch _, known := quantiles[b.Metric]; {
	case !ok:
		return b, errBound
	case b.Metric == ErrorsMetric:
		number, percent := strings.CutSuffix(value, "%")
		v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if percent {
			v /= 100
		}
		if err != nil || !(v > 0) || v > 1 {
			return b, errors.New("give a share of calls above 0, such as errors<0.1%")
		}
		b.Share = v
	case known:
		d, err := time.ParseDuration(strings.ReplaceAll(value, " ", ""))
		if err != nil || d <= 0 {
			return b, errors.New("give a duration with its unit, such as 500us, 1ms or 1s")
		}
		b.Below = d
	default:
		return b, errors.New("metrics are p50, p90, p99, p99.9, p99.99, mean, max and errors")
	}
	return b, nil
}

// String is the bound as ParseLimit reads it.
func (b Bound) String() string {
	if b.Metric == ErrorsMetric {
		return fmt.Sprintf("%s<%s%%", b.Metric, strconv.FormatFloat(b.Share*100, 'g', 15, 64))
	}
	return fmt.Sprintf("%s<%v", b.Metric, b.Below)
}

// String is the limit as ParseLimit reads it.
func (l Limit) String() string {
	texts := make([]string, len(l))
	for i, b := range l {
		texts[i] = b.String()
	}
	return strings.Join(texts, " and ")
}

// broken says how a load breaks the bound; empty: it holds.
func (b Bound) broken(r Run) string {
	if b.Metric == ErrorsMetric {
		if r.ErrorShare >= b.Share {
			return fmt.Sprintf("errors %.3g %%", r.ErrorShare*100)
		}
		return ""
	}
	if ns := quantiles[b.Metric].of(r.Latency); ns >= int64(b.Below) {
		return b.Metric + " " + format.Brief(ns)
	}
	return ""
}

// lateShare is the share of a bound from which the generator's own delay may have broken it.
const lateShare = 0.1

// byGenerator: the generator's own delay may be why the bound is broken. Service times hold it, and the generator was
// late by lateShare of it. The wait for a connection with room is not its delay.
func (b Bound) byGenerator(r Run) bool {
	q, ok := quantiles[b.Metric]
	return ok && q.of(r.Service) < int64(b.Below) && float64(q.late(r)) >= lateShare*float64(b.Below)
}

// callsBeyond is how many calls should lie above a quantile; with fewer chance decides it.
const callsBeyond = 10

// callsNeeded is how many calls a load needs for the metrics of the limit.
func (l Limit) callsNeeded() int64 {
	needed := int64(0)
	for _, b := range l {
		share := b.Share
		if q, ok := quantiles[b.Metric]; ok {
			share = q.above
		}
		if share > 0 {
			needed = max(needed, int64(math.Ceil(callsBeyond/share)))
		}
	}
	return needed
}
