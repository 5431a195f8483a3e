package matrix

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"slowpath/internal/format"
	"slowpath/internal/load/experiment"
	"slowpath/internal/stats"
)

// add is a round of a row.
func (r *PoolRow) add(round int, c Cell, connections int) {
	r.Library = c.Library
	r.Calls, r.Errors = r.Calls+c.Calls, r.Errors+c.Errors
	if c.LastError != "" {
		r.LastError = c.LastError
	}
	for kind, n := range c.ErrorKinds {
		if r.ErrorKinds == nil {
			r.ErrorKinds = map[string]int64{}
		}
		r.ErrorKinds[kind] += n
	}
	r.Runs = append(r.Runs, PoolRun{
		Round: round, Calls: c.Calls, Errors: c.Errors, RequestsPerSecond: c.RequestsPerSecond, MeanNs: c.MeanNs,
		P50Ns: c.P50Ns, P99Ns: c.P99Ns, Connections: connections, LimitedBy: c.LimitedBy,
	})
}

// conclude computes what the rounds show.
func (s *PoolSweep) conclude() {
	fewest := s.Settings.Rounds
	for i := range s.Rows {
		if r := &s.Rows[i]; r.Measured() {
			r.summarise()
			fewest = min(fewest, len(r.Runs))
		}
	}
	s.Best, s.Notes = []PoolBest{}, []string{}
	if !s.Measured() {
		return
	}
	if fewest < stats.RepeatsForInterval {
		s.Notes = append(s.Notes, fmt.Sprintf("A row of %s has no 95 %% interval, and shows no best size; one of %d "+
			"has (--repeat %[2]d).", format.Count(fewest, "round"), stats.RepeatsForInterval))
	}
	for _, r := range s.Rows {
		if r.Measured() && r.Mode == PerThread && r.Connections > 0 && r.Connections < r.Callers {
			s.Notes = append(s.Notes, fmt.Sprintf("%s: the server had %d of its %d connections in the middle of the "+
				"counted time; the others were still being opened, or lost: give a longer --warmup, and see ERRORS.",
				r, r.Connections, r.Callers))
		}
	}
	byClient := map[string][]PoolRow{}
	var order []string
	for _, r := range s.Rows {
		if !r.Measured() || r.RequestsPerSecond.Low == nil || r.RequestsPerSecond.High == nil {
			continue
		}
		if byClient[r.Client] == nil {
			order = append(order, r.Client)
		}
		byClient[r.Client] = append(byClient[r.Client], r)
	}
	for _, client := range order {
		s.Best = append(s.Best, bestOf(byClient[client])...)
	}
}

// summarise is the medians of a row.
func (r *PoolRow) summarise() {
	median := func(of func(PoolRun) float64) *experiment.Estimate {
		values := make([]float64, len(r.Runs))
		for i, run := range r.Runs {
			values[i] = of(run)
		}
		m := stats.EstimateMedian(values)
		e := experiment.Estimate{Value: m.Value}
		if !math.IsInf(m.Low, 0) && !math.IsInf(m.High, 0) {
			e.Low, e.High = &m.Low, &m.High
		}
		return &e
	}
	r.RequestsPerSecond = median(func(x PoolRun) float64 { return x.RequestsPerSecond })
	r.MeanNs = median(func(x PoolRun) float64 { return float64(x.MeanNs) })
	r.P50Ns = median(func(x PoolRun) float64 { return float64(x.P50Ns) })
	r.P99Ns = median(func(x PoolRun) float64 { return float64(x.P99Ns) })
	r.Connections = int(median(func(x PoolRun) float64 { return float64(x.Connections) }).Value)
	by := map[string]int{}
	for _, run := range r.Runs {
		if run.LimitedBy != "" {
			by[run.LimitedBy]++
		}
	}
	for _, limit := range slices.Sorted(maps.Keys(by)) {
		if by[limit] > r.LimitedRounds {
			r.LimitedBy, r.LimitedRounds = limit, by[limit]
		}
	}
}

// bestOf compares the rows of a client: the sizes of each mode, and the best of both modes.
func bestOf(rows []PoolRow) (out []PoolBest) {
	var tops []PoolRow
	for _, mode := range PoolModes() {
		of := slices.DeleteFunc(slices.Clone(rows), func(r PoolRow) bool { return r.Mode != mode })
		slices.SortStableFunc(of, func(a, b PoolRow) int {
			return cmp.Compare(b.RequestsPerSecond.Value, a.RequestsPerSecond.Value)
		})
		if len(of) > 0 {
			tops = append(tops, of[0])
		}
		if len(of) > 1 {
			out = append(out, bestSize(of))
		}
	}
	if len(tops) == 2 {
		out = append(out, bestMode(tops[0], tops[1]))
	}
	return out
}

// bestSize compares the sizes of one mode; the first row has the most calls.
func bestSize(rows []PoolRow) PoolBest {
	best := rows[0]
	out := PoolBest{Client: best.Client}
	var more, equal []string
	for _, r := range rows[1:] {
		against := times(best, r)
		out.Against = append(out.Against, against)
		if against.shown() {
			more = append(more, fmt.Sprintf("%s the calls of %s", against, format.Thousands(r.Pool)))
		} else {
			equal = append(equal, format.Thousands(r.Pool))
		}
	}
	out.Sentence = best.Client + ", " + modeText(best.Mode) + ": "
	if len(more) == 0 {
		out.Sentence += "no size is shown to be better than another."
		return out
	}
	out.Mode, out.Pool = best.Mode, best.Pool
	out.Sentence += fmt.Sprintf("%s: %s", format.Count(best.Pool, "connection"), strings.Join(more, ", "))
	if len(equal) > 0 {
		out.Sentence += "; no difference from " + strings.Join(equal, ", ") + " shown"
	}
	out.Sentence += "."
	return out
}

// bestMode compares the best row of each mode.
func bestMode(borrow, own PoolRow) PoolBest {
	better, other := own, borrow
	if own.RequestsPerSecond.Value < borrow.RequestsPerSecond.Value {
		better, other = borrow, own
	}
	against := times(better, other)
	out := PoolBest{Client: own.Client, Against: []PoolTimes{against}}
	setup := fmt.Sprintf("(%s with one each, against %s that share %s)", format.Count(own.Callers, "caller"),
		format.Thousands(borrow.Callers), format.Count(borrow.Pool, "connection"))
	switch {
	case !against.shown():
		out.Sentence = fmt.Sprintf("%s: no difference shown between borrowing per call and a connection per thread %s.",
			own.Client, setup)
		return out
	case better.Mode == PerThread:
		out.Sentence = fmt.Sprintf("%s: a connection per thread: %s the calls of borrowing per call %s.", own.Client,
			against, setup)
	default:
		out.Sentence = fmt.Sprintf("%s: borrowing per call: %s the calls of a connection per thread %s.", own.Client,
			against, setup)
	}
	out.Mode, out.Pool = better.Mode, better.Pool
	return out
}

// times compares the calls per second of two rows by the rounds that both have: what slows the machine down in a round
// does so for both.
func times(better, other PoolRow) PoolTimes {
	at := map[int]float64{}
	for _, run := range other.Runs {
		at[run.Round] = run.RequestsPerSecond
	}
	var logs []float64
	for _, run := range better.Runs {
		if x := at[run.Round]; x > 0 && run.RequestsPerSecond > 0 {
			logs = append(logs, math.Log(run.RequestsPerSecond/x))
		}
	}
	out := PoolTimes{Mode: other.Mode, Pool: other.Pool}
	if len(logs) == 0 {
		return out
	}
	p := stats.ComparePairs(logs)
	out.Times = &experiment.Estimate{Value: math.Exp(p.Shift)}
	if !math.IsInf(p.Low, 0) && !math.IsInf(p.High, 0) {
		low, high := math.Exp(p.Low), math.Exp(p.High)
		out.Times.Low, out.Times.High = &low, &high
	}
	return out
}

// shown says whether the interval of the ratio is above 1.
func (t PoolTimes) shown() bool { return t.Times != nil && t.Times.Low != nil && *t.Times.Low > 1 }

// String is "1.3x (1.2 to 1.5)".
func (t PoolTimes) String() string {
	digits := 1
	if *t.Times.Low < 1.1 {
		digits = 2
	}
	return fmt.Sprintf("%.*fx (%.*f to %.*f)", digits, t.Times.Value, digits, *t.Times.Low, digits, *t.Times.High)
}

func modeText(mode string) string {
	if mode == PerThread {
		return "a connection per thread"
	}
	return "borrow per call"
}
