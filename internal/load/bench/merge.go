package bench

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"slowpath/internal/load/bottleneck"
)

// Part is one of the results that were added up.
type Part struct {
	Name              string    `json:"name"` // of its file
	Target            string    `json:"target"`
	Start             time.Time `json:"start"`
	Seconds           float64   `json:"seconds"`
	Requests          int64     `json:"requests"`
	RequestsPerSecond float64   `json:"requests_per_second"` // of its own time
	P99Ns             int64     `json:"p99_ns"`
	LimitedBy         string    `json:"limited_by"`
	GeneratorLimited  bool      `json:"generator_limited"`
}

// Named is a result and the name of its file.
type Named struct {
	Name   string
	Result *Result
}

// Why results cannot be added up.
var (
	ErrFew   = errors.New("there is nothing to add up: give two results or more")
	ErrSame  = errors.New("are the same result: give each once")
	ErrScale = errors.New("has histograms of another scale: it is of another version of slowpath; make the load again")
)

// Merge adds up the results of one load that several processes made. Histograms are added exactly. The rate is that of
// the time that all have in common, and 0 where there is none. The notes say in what the sum differs from one load.
func Merge(parts []Named) (*Result, error) {
	if len(parts) < 2 {
		return nil, ErrFew
	}
	if err := distinct(parts); err != nil {
		return nil, err
	}
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(a, b Named) int { return a.Result.Start.Compare(b.Result.Start) })
	m := merger{parts: parts}
	return m.sum()
}

// distinct refuses a result that is given twice.
func distinct(parts []Named) error {
	for i, a := range parts {
		for _, b := range parts[:i] {
			if a.Result.Start.Equal(b.Result.Start) && a.Result.Settings.Seed == b.Result.Settings.Seed &&
				a.Result.Requests == b.Result.Requests && a.Result.Service.HDR == b.Result.Service.HDR &&
				a.Result.Requests > 0 {
				return fmt.Errorf("%s and %s %w", b.Name, a.Name, ErrSame)
			}
		}
	}
	return nil
}

// merger adds up results; the parts are in the order of their start.
type merger struct {
	parts []Named
	out   *Result
}

func (m *merger) sum() (*Result, error) {
	first := m.parts[0].Result
	r := &Result{
		Schema: Schema, Version: first.Version, Target: first.Target, Settings: m.settings(),
		Start:  first.Start,
		Errors: map[string]int64{}, Ops: []Op{}, Notes: []string{},
	}
	m.out = r
	end := first.Start
	for _, p := range m.parts {
		x := p.Result
		if e := endOf(x); e.After(end) {
			end = e
		}
		r.Interrupted = r.Interrupted || x.Interrupted
		r.Requests += x.Requests
		r.Misses += x.Misses
		for k, n := range x.Errors {
			r.Errors[k] += n
		}
		r.Unanswered.InFlight += x.Unanswered.InFlight
		r.Unanswered.Unsent += x.Unanswered.Unsent
		r.Unanswered.Failed += x.Unanswered.Failed
		r.Connections.Lost += x.Connections.Lost
		r.Connections.Reconnected += x.Connections.Reconnected
		r.Bytes.Out += x.Bytes.Out
		r.Bytes.In += x.Bytes.In
		m.generator(&x.Generator)
		r.Parts = append(r.Parts, Part{
			Name: p.Name, Target: x.Target.Address, Start: x.Start, Seconds: x.Seconds,
			Requests:          x.Requests,
			RequestsPerSecond: x.RequestsPerSecond, P99Ns: x.Latency.P99Ns, LimitedBy: x.LimitedBy,
			GeneratorLimited: x.Bottleneck.GeneratorLimited,
		})
	}
	r.Seconds = end.Sub(first.Start).Seconds()
	r.RequestsPerSecond = m.commonRate()
	m.schedule()
	r.Replay = m.replay()
	if err := m.latencies(); err != nil {
		return nil, err
	}
	if err := m.connections(); err != nil {
		return nil, err
	}
	r.Series = m.series()
	r.Bottleneck = m.bottleneck()
	r.LimitedBy = r.Bottleneck.By
	r.Notes = append(r.Notes, m.notes()...)
	return r, nil
}

func endOf(r *Result) time.Time { return r.Start.Add(time.Duration(r.Seconds * 1e9)) }

// generator adds up what the parts cost their generators.
func (m *merger) generator(g *Generator) {
	t := &m.out.Generator
	calls := float64(m.out.Requests)
	before := calls
	if n := len(m.out.Parts); n < len(m.parts) {
		before -= float64(m.parts[n].Result.Requests)
	}
	t.CPUNs += g.CPUNs
	t.WorkersCPUNs += g.WorkersCPUNs
	t.WorkersRunQueueNs += g.WorkersRunQueueNs
	t.WorkersSpunNs += g.WorkersSpunNs
	if calls > 0 {
		t.CPUSecondsPerMillion = float64(t.CPUNs) / calls / 1e3
		t.SystemCallsPerRequest = (t.SystemCallsPerRequest*before + g.SystemCallsPerRequest*(calls-before)) / calls
	}
}

// settings are those of the first part, with the sums over all parts.
func (m *merger) settings() Settings {
	s := m.parts[0].Result.Settings
	s.Stretches = nil // each has its own; the sum is in schedule.per_second
	for _, p := range m.parts[1:] {
		s.Connections += p.Result.Settings.Connections
		s.Threads += p.Result.Settings.Threads
		s.Requests += p.Result.Settings.Requests
		s.DurationNs = max(s.DurationNs, p.Result.Settings.DurationNs)
	}
	return s
}

// schedule is the sum of the rates and the largest of the delays.
func (m *merger) schedule() {
	kept := true
	var s Schedule
	for _, p := range m.parts {
		x := p.Result.Schedule
		if x == nil {
			return
		}
		s.PerSecond += x.PerSecond
		s.LateP50Ns, s.LateP99Ns, s.LateMaxNs = max(s.LateP50Ns, x.LateP50Ns), max(s.LateP99Ns, x.LateP99Ns),
			max(s.LateMaxNs, x.LateMaxNs)
		kept = kept && x.Kept
	}
	s.Kept = kept
	m.out.Schedule = &s
}

// bottleneck is the verdict with the highest certainty. A part that its generator limited comes first, since then the
// sum is too low.
func (m *merger) bottleneck() bottleneck.Verdict {
	var best bottleneck.Verdict
	for _, p := range m.parts {
		v := p.Result.Bottleneck
		if p.Result.LimitedBy == "" {
			continue
		}
		if best.By == "" || v.GeneratorLimited && !best.GeneratorLimited ||
			v.GeneratorLimited == best.GeneratorLimited && v.Certainty > best.Certainty {
			best = v
			best.Sentence = p.Name + ": " + v.Sentence
		}
	}
	if best.By == "" {
		return bottleneck.Verdict{
			By: bottleneck.ByUnknown, Sentence: "no part says what limited it",
			Evidence: []bottleneck.Fact{},
		}
	}
	return best
}
