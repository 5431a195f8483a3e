package bench

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/limit"
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

// Named is a result and where it comes from.
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

// Merge adds up the results of one load that several processes made. Histograms are added exactly; the rate is that of the time that all had in
// common, and is 0 where they had none. What makes the sum other than that of one load is in its notes.
func Merge(parts []Named) (*Result, error) {
	if len(parts) < 2 {
		return nil, ErrFew
	}
	if err := distinct(parts); err != nil {
		return nil, err
	}
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(a, b Named) int { return a.Result.Start.Compare(b.Result.Start) })
	m := merging{parts: parts}
	return m.sum()
}

// distinct refuses the same result twice.
func distinct(parts []Named) error {
	for i, a := range parts {
		for _, b := range parts[:i] {
			if a.Result.Start.Equal(b.Result.Start) && a.Result.Settings.Seed == b.Result.Settings.Seed && a.Result.Requests == b.Result.Requests && a.Result.Service.HDR == b.Result.Service.HDR && a.Result.Requests > 0 {
				return fmt.Errorf("%s and %s %w", b.Name, a.Name, ErrSame)
			}
		}
	}
	return nil
}

// merging is the sum under way; the parts are in order of their start.
type merging struct {
	parts []Named
	out   *Result
}

func (m *merging) sum() (*Result, error) {
	first := m.parts[0].Result
	r := &Result{Schema: Schema, Version: first.Version, Target: first.Target, Settings: m.settings(), Start: first.Start,
		Errors: map[string]int64{}, Ops: []Op{}, Notes: []string{}}
	m.out = r
	end := first.Start
	for _, p := range m.parts {
		x := p.Result
		if e := ended(x); e.After(end) {
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
		r.Parts = append(r.Parts, Part{Name: p.Name, Target: x.Target.Address, Start: x.Start, Seconds: x.Seconds, Requests: x.Requests,
			RequestsPerSecond: x.RequestsPerSecond, P99Ns: x.Latency.P99Ns, LimitedBy: x.LimitedBy, GeneratorLimited: x.Limit.GeneratorLimited})
	}
	r.Seconds = end.Sub(first.Start).Seconds()
	r.RequestsPerSecond = m.commonRate()
	m.schedule()
	if err := m.latencies(); err != nil {
		return nil, err
	}
	if err := m.connections(); err != nil {
		return nil, err
	}
	r.Series = m.series()
	r.Limit = m.limit()
	r.LimitedBy = r.Limit.By
	r.Notes = append(r.Notes, m.notes()...)
	return r, nil
}

func ended(r *Result) time.Time { return r.Start.Add(time.Duration(r.Seconds * 1e9)) }

// generator adds up what the parts cost on their sides.
func (m *merging) generator(g *Generator) {
	t := &m.out.Generator
	calls := float64(m.out.Requests)
	before := calls
	if n := len(m.out.Parts); n < len(m.parts) {
		before -= float64(m.parts[n].Result.Requests)
	}
	t.CPUNs += g.CPUNs
	t.WorkersCPUNs += g.WorkersCPUNs
	t.WorkersRunQueueNs += g.WorkersRunQueueNs
	if calls > 0 {
		t.CPUSecondsPerMillion = float64(t.CPUNs) / calls / 1e3
		t.SystemCallsPerRequest = (t.SystemCallsPerRequest*before + g.SystemCallsPerRequest*(calls-before)) / calls
	}
}

// settings are those of the first part, with what all have together.
func (m *merging) settings() Settings {
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

// schedule is the sum of rates and the worst of the delays.
func (m *merging) schedule() {
	kept := true
	var s Schedule
	for _, p := range m.parts {
		x := p.Result.Schedule
		if x == nil {
			return
		}
		s.PerSecond += x.PerSecond
		s.LateP50Ns, s.LateP99Ns, s.LateMaxNs = max(s.LateP50Ns, x.LateP50Ns), max(s.LateP99Ns, x.LateP99Ns), max(s.LateMaxNs, x.LateMaxNs)
		kept = kept && x.Kept
	}
	s.Kept = kept
	m.out.Schedule = &s
}

// common is the time that all parts had.
func (m *merging) common() (from, to time.Time) {
	from, to = m.parts[0].Result.Start, ended(m.parts[0].Result)
	for _, p := range m.parts[1:] {
		if p.Result.Start.After(from) {
			from = p.Result.Start
		}
		if e := ended(p.Result); e.Before(to) {
			to = e
		}
	}
	return from, to
}

// commonRate is what all did together per second of the common time. A second that is in it in part counts in that proportion.
func (m *merging) commonRate() float64 {
	from, to := m.common()
	window := to.Sub(from).Seconds()
	if window <= 0 {
		return 0
	}
	calls := 0.0
	for _, p := range m.parts {
		begin, end := from.Sub(p.Result.Start).Seconds(), to.Sub(p.Result.Start).Seconds()
		for _, s := range p.Result.Series {
			at := float64(s.Second)
			if inside := min(end, at+s.Seconds) - max(begin, at); inside > 0 && s.Seconds > 0 {
				calls += float64(s.Requests) * min(1, inside/s.Seconds)
			}
		}
	}
	return calls / window
}

// latencies adds up the histograms, of all and of each op.
func (m *merging) latencies() error {
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

func (m *merging) opNames() []string {
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
func (m *merging) histograms(pick func(*Result) *Latency) (Latency, error) {
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
		case h.HighestTrackableValue() != sum.HighestTrackableValue() || h.SignificantFigures() != sum.SignificantFigures() || h.LowestTrackableValue() != sum.LowestTrackableValue():
			return Latency{}, fmt.Errorf("%s %w", p.Name, ErrScale)
		default:
			sum.Merge(h)
		}
	}
	return latencyOf(sum)
}

// series adds up the seconds, counted from the first start. Percentiles of a second are the highest of the parts', which no sum exceeds.
func (m *merging) series() []Second {
	seconds := map[int]*Second{}
	for _, p := range m.parts {
		shift := int(p.Result.Start.Sub(m.out.Start).Seconds() + 0.5)
		for _, s := range p.Result.Series {
			n := s.Second + shift
			t := seconds[n]
			if t == nil {
				t = &Second{Second: n}
				seconds[n] = t
			}
			t.add(s)
		}
	}
	var out []Second
	for _, n := range slices.Sorted(maps.Keys(seconds)) {
		out = append(out, *seconds[n])
	}
	return out
}

func (t *Second) add(s Second) {
	t.Seconds = max(t.Seconds, s.Seconds)
	t.Requests += s.Requests
	t.Errors += s.Errors
	t.Misses += s.Misses
	t.SentAgain += s.SentAgain
	t.P50Ns, t.P99Ns, t.P999Ns, t.MaxNs = max(t.P50Ns, s.P50Ns), max(t.P99Ns, s.P99Ns), max(t.P999Ns, s.P999Ns), max(t.MaxNs, s.MaxNs)
	t.ServiceP50Ns, t.ServiceP99Ns, t.ServiceMaxNs = max(t.ServiceP50Ns, s.ServiceP50Ns), max(t.ServiceP99Ns, s.ServiceP99Ns), max(t.ServiceMaxNs, s.ServiceMaxNs)
	t.LateP99Ns = max(t.LateP99Ns, s.LateP99Ns)
	t.InFlight += s.InFlight
	t.Connected += s.Connected
	t.Reconnected += s.Reconnected
	t.BytesOut += s.BytesOut
	t.BytesIn += s.BytesIn
	t.WorkersCPUNs += s.WorkersCPUNs
	t.WorkersRunQueueNs += s.WorkersRunQueueNs
}

// limit is the verdict of the part that is surest of it; a part that its generator limited makes it that of the sum, which is then too low.
func (m *merging) limit() limit.Verdict {
	var best limit.Verdict
	for _, p := range m.parts {
		v := p.Result.Limit
		if p.Result.LimitedBy == "" {
			continue
		}
		if best.By == "" || v.GeneratorLimited && !best.GeneratorLimited || v.GeneratorLimited == best.GeneratorLimited && v.Certainty > best.Certainty {
			best = v
			best.Sentence = p.Name + ": " + v.Sentence
		}
	}
	if best.By == "" {
		return limit.Verdict{By: limit.ByUnknown, Sentence: "no part says what limited it", Evidence: []limit.Fact{}}
	}
	return best
}
