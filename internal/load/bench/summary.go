//go:build linux

package bench

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/load/engine"
)

// KeptWithin is the lateness that 99 % of the calls of a kept schedule stay below. It is an aim; docs/benchmarks.md has
// measurements.
const KeptWithin = 50 * time.Microsecond

// summary makes the result of what was collected.
type summary struct {
	Options
	*collector
	ran         engine.Result
	cpu         time.Duration
	interrupted bool
	observer    *observer
	// by histogram, since one can be in several places of the result
	latencies map[*hdrhistogram.Histogram]Latency
}

// latencyOf caches the package's latencyOf: to encode a histogram takes a millisecond.
func (s *summary) latencyOf(h *hdrhistogram.Histogram) (Latency, error) {
	if l, known := s.latencies[h]; known {
		return l, nil
	}
	l, err := latencyOf(h)
	if s.latencies == nil {
		s.latencies = map[*hdrhistogram.Histogram]Latency{}
	}
	s.latencies[h] = l
	return l, err
}

func (s *summary) result() (*Result, error) {
	t := s.total
	seconds := float64(s.ran.EndNs-s.ran.StartNs) / 1e9
	r := &Result{
		Schema: Schema, Version: s.Version, Target: s.Target, Settings: s.settings(), Start: time.Unix(0,
			s.ran.StartNs).UTC(), Seconds: seconds,
		Interrupted: s.interrupted, Requests: t.Calls(), Errors: allErrors(t), Series: s.series, Ops: []Op{},
		Notes:       []string{},
		Unanswered:  Unanswered{InFlight: s.ran.InFlight, Unsent: s.ran.Unsent, Failed: t.Failed},
		Connections: Connections{Lost: t.Lost, Reconnected: t.Reconnected, Retired: t.Retired},
		Bytes:       Bytes{Out: t.BytesOut, In: t.BytesIn},
	}
	r.RequestsPerSecond = rate(r.Requests-t.Drained, seconds)
	r.Generator = Generator{
		CPUNs: int64(s.cpu), CPUSecondsPerMillion: rate(int64(s.cpu), float64(r.Requests)*1e3),
		WorkersCPUNs: t.CPUNs, WorkersRunQueueNs: t.RunQueueNs, WorkersSpunNs: t.SpunNs,
		SystemCallsPerRequest: rate(t.Waits+t.Reads+t.Writes, float64(r.Requests)),
	}
	if err := s.latenciesOf(r); err != nil {
		return nil, err
	}
	r.Mismatches = t.Mismatches
	r.TimedOut, r.Delivered = t.TimedOut, t.Delivered
	for i := range t.Ops {
		op, err := s.op(i, seconds)
		if err != nil {
			return nil, err
		}
		r.Misses += op.Misses
		r.Ops = append(r.Ops, op)
	}
	if s.Load.Open() {
		r.Schedule = s.schedule(r)
	}
	if len(t.Nodes) > 0 {
		r.Routing = &Routing{ReadFrom: cmp.Or(s.Load.ReadFrom, engine.Master), Nodes: t.Nodes, Retried: t.Retried}
	}
	r.Replay = s.replay()
	verdict := s.observer.verdict(s, r)
	r.LimitedBy, r.Bottleneck = verdict.By, verdict
	r.Notes = append(r.Notes, s.notes(r)...)
	return r, nil
}

// latenciesOf fills in the latencies of all calls, of opening connections, of the wait for the pool, and of delivery.
func (s *summary) latenciesOf(r *Result) (err error) {
	t := s.total
	latency, service := Histograms(t)
	if r.Latency, err = s.latencyOf(latency); err != nil {
		return err
	}
	if r.Service, err = s.latencyOf(service); err != nil {
		return err
	}
	if r.Dials, err = dialsOf(t); err != nil {
		return err
	}
	if r.PoolWait, err = optionalLatency(t.PoolWait); err != nil {
		return err
	}
	r.Delivery, err = optionalLatency(t.Delivery)
	return err
}

// optionalLatency is nil without a histogram.
func optionalLatency(h *hdrhistogram.Histogram) (*Latency, error) {
	if h == nil {
		return nil, nil
	}
	l, err := latencyOf(h)
	return &l, err
}

// allErrors are the errors of calls and of connections.
func allErrors(t *engine.Tally) map[string]int64 {
	out := maps.Clone(t.Errors)
	for kind, n := range t.ConnErrors {
		out[kind] += n
	}
	return out
}

// dialsOf gives the phases of opening connections during the load, without those that never took place.
func dialsOf(t *engine.Tally) (map[string]Latency, error) {
	d, out := t.Dials, map[string]Latency{}
	for name, h := range map[string]*hdrhistogram.Histogram{
		"dns": d.DNS, "connect": d.Connect, "tls": d.TLS,
		"handshake": d.Handshake, "whole": d.Whole,
	} {
		if h == nil || h.TotalCount() == 0 {
			continue
		}
		l, err := latencyOf(h)
		if err != nil {
			return nil, err
		}
		out[name] = l
	}
	return out, nil
}

// rate is n per unit, 0 without units.
func rate(n int64, units float64) float64 {
	if units <= 0 {
		return 0
	}
	return float64(n) / units
}

func (s *summary) op(i int, seconds float64) (Op, error) {
	o, t := s.Load.Ops()[i], s.total.Ops[i]
	op := Op{
		Op: o.Name, Ratio: o.Ratio, Requests: t.Calls, RequestsPerSecond: rate(t.Calls, seconds), Errors: t.Errors,
		Misses: t.Misses,
	}
	service, err := s.latencyOf(t.Service)
	if err != nil {
		return op, fmt.Errorf("%s: %w", o.Name, err)
	}
	op.Service, op.Latency = service, service
	if t.Response != nil {
		op.Latency, err = s.latencyOf(t.Response)
	}
	return op, err
}

func (s *summary) settings() Settings {
	o := &s.Load
	out := Settings{
		Loop: Closed, Connections: o.Connections, Pipeline: o.Pipeline, PipelineMode: "window",
		Threads: s.workers, BusyPoll: o.BusyPoll,
		PerCall: o.PerCall, ReconnectEvery: o.ReconnectEvery, ColdStart: o.ColdStart, TimeoutNs: int64(o.Timeout),
		Pool: o.Pool, PoolWorkers: o.Workers, Subscribers: o.Subscribers,
		Verify:     o.Verify,
		DurationNs: int64(o.Duration), Requests: o.Requests, Seed: o.Seed, Protocol: max(o.Target.Protocol, 2),
		TLS: o.Target.TLS != nil, Workload: s.Workload,
	}
	if !s.StartAt.IsZero() {
		at := s.StartAt.UTC()
		out.StartAt = &at
	}
	if o.Batch {
		out.PipelineMode = "batch"
	}
	if s.Load.Open() {
		out.Loop, out.Arrivals = Open, o.Arrivals
		if o.Paced() {
			out.Arrivals = ReplayOf
		}
		for _, p := range o.Schedule {
			out.Stretches = append(out.Stretches, Stretch{DurationNs: int64(p.Lasts), From: p.From, To: p.To})
		}
	}
	return out
}

// schedule says how well the schedule was kept.
func (s *summary) schedule(r *Result) *Schedule {
	late := s.total.Late
	out := &Schedule{LateP50Ns: late.ValueAtQuantile(50), LateP99Ns: late.ValueAtQuantile(99), LateMaxNs: late.Max()}
	out.PerSecond = s.askedRate(r.Seconds)
	out.Kept = out.LateP99Ns <= int64(KeptWithin) && s.ran.Unsent == 0
	return out
}

// meanRate is the rate of a schedule over the time that it ran.
func meanRate(stretches []engine.Stretch, ran time.Duration) float64 {
	var calls float64
	left := ran
	for _, p := range stretches {
		if left <= 0 {
			break
		}
		took := min(left, p.Lasts)
		end := p.From + (p.To-p.From)*float64(took)/float64(p.Lasts)
		calls += (p.From + end) / 2 * took.Seconds()
		left -= took
	}
	return rate(int64(calls*1e6), (ran-left).Seconds()*1e6)
}
