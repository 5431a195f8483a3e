package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"slowpath/internal/load/scalability"
)

// sweepOf makes a sweep over loads whose throughput is a function of the value, with noise that is a share of it.
func sweepOf(t *testing.T, axis string, repeats int, noise float64, x func(float64) float64, change func(n int,
	r *Run),
) *Sweep {
	t.Helper()
	a, err := ParseAxis(axis)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	s, err := MakeSweep(t.Context(), SweepOptions{
		Axis: a, Repeats: repeats, Gain: 0.1, Seed: 3,
		Load: func(_ context.Context, n int) (Run, error) {
			speed := x(float64(n)) * (1 + noise*rng.NormFloat64())
			r := Run{RequestsPerSecond: speed, Latency: Latency{
				P50Ns: int64(float64(n) / speed * 1e9),
				P99Ns: int64(2 * float64(n) / speed * 1e9),
			}}
			if change != nil {
				change(n, &r)
			}
			return r, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSweepNamesTheKnee(t *testing.T) {
	law := scalability.Law{Lambda: 20000, Sigma: 0.05, Kappa: 0.00005}
	s := sweepOf(t, "connections=1..1000", 3, 0.02, law.At, nil)
	if s.Law == nil || !s.Law.Holds || s.Knee == nil || s.Knee.From != FromLaw {
		t.Fatalf("%+v", s)
	}
	if k, want := s.Knee, law.Knee(0.1); *k.Low > want || *k.High < want {
		t.Errorf("knee %g (%g to %g), in truth %g", k.Value, *k.Low, *k.High, want)
	}
	if p := s.Law.Peak; p == nil || *p.Low > law.Peak() || *p.High < law.Peak() {
		t.Errorf("peak %+v, in truth %g", p, law.Peak())
	}
	if !strings.Contains(s.Summary, "twice as many give less than 10 %") || !strings.Contains(s.Summary,
		"The peak is at") {
		t.Error(s.Summary)
	}
}

// TestSweepOfServerWithOneThread: throughput that grows until a CPU is full, and then no more, has a corner that the
// law has not.
func TestSweepOfServerWithOneThread(t *testing.T) {
	s := sweepOf(t, "connections=1..1000", 3, 0.01, func(n float64) float64 { return min(20000*n, 150000) }, nil)
	if s.Law == nil || s.Law.Holds || s.Knee == nil || s.Knee.From != FromPoints || s.Knee.Value != 5 &&
		s.Knee.Value != 10 {
		t.Errorf("law %+v, knee %+v", s.Law, s.Knee)
	}
	if len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "does not describe these loads") {
		t.Errorf("notes: %q", s.Notes)
	}
}

func TestSweepWithoutKnee(t *testing.T) {
	s := sweepOf(t, "connections=1..100", 2, 0.01, func(n float64) float64 { return 1000 * n }, nil)
	if s.Knee != nil || !strings.HasPrefix(s.Summary, "No knee up to 100 connections") {
		t.Errorf("%+v: %s", s.Knee, s.Summary)
	}
}

// TestSweepLeavesOutTheGenerator: where the generator is the bottleneck, its ceiling is no knee of the server.
func TestSweepLeavesOutTheGenerator(t *testing.T) {
	law := scalability.Law{Lambda: 20000, Sigma: 0.001, Kappa: 0}
	limit := func(n float64) float64 { return min(law.At(n), 300000) }
	s := sweepOf(t, "connections=1..1000", 3, 0.01, limit, func(n int, r *Run) { r.GeneratorLimited = n >= 20 })
	if s.Knee != nil || s.Law == nil || !slices.ContainsFunc(s.Notes, func(n string) bool {
		return strings.Contains(n,
			"generator was the bottleneck at 20, 50, 100")
	}) {
		t.Errorf("knee %+v, notes %q", s.Knee, s.Notes)
	}
	for _, p := range s.Points {
		if p.GeneratorLimited != (p.Value >= 20) {
			t.Errorf("%+v", p)
		}
	}
	all := sweepOf(t, "connections=1..1000", 1, 0.01, limit, func(_ int, r *Run) { r.GeneratorLimited = true })
	if all.Knee != nil || all.Law != nil || !strings.HasPrefix(all.Summary, "The generator limited every load") {
		t.Errorf("%s", all.Summary)
	}
}

// TestSweepUnderDrift: a machine that loses a third of its speed during the sweep does not bend the curve, since no
// value is always late.
func TestSweepUnderDrift(t *testing.T) {
	done := 0.0
	s := sweepOf(t, "connections=1..1000", 6, 0, func(n float64) float64 {
		done++
		return 1000 * n * (1 - done/180)
	}, nil)
	if s.Knee != nil {
		t.Errorf("drift was taken for a knee: %s", s.Summary)
	}
}

func TestSweepOfOtherAxes(t *testing.T) {
	s := sweepOf(t, "rate=1000..100000", 1, 0, func(n float64) float64 { return min(n, 30000) }, nil)
	if s.Law != nil || s.Knee != nil || !strings.HasPrefix(s.Summary, "The server kept up to 20 000/s") {
		t.Errorf("%s", s.Summary)
	}
	s = sweepOf(t, "value-size=1..1000", 1, 0, func(n float64) float64 { return 1e6 / (10 + n) }, nil)
	if s.Law != nil || !strings.HasPrefix(s.Summary, "From 1 to 1000 bytes") {
		t.Errorf("%s", s.Summary)
	}
}

// TestOrder: every value once in each round, the rounds in different orders.
func TestOrder(t *testing.T) {
	values := []int{1, 2, 5, 10, 20, 50}
	o := order(values, 3, 1)
	for r := range 3 {
		if got := slices.Sorted(slices.Values(o[r*6 : r*6+6])); !slices.Equal(got, values) {
			t.Errorf("round %d: %v", r, got)
		}
	}
	if slices.Equal(o[:6], o[6:12]) && slices.Equal(o[:6], o[12:]) {
		t.Error("all rounds have the same order")
	}
}

func TestSweepEnds(t *testing.T) {
	a, _ := ParseAxis("connections=1..10")
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	s, err := MakeSweep(ctx, SweepOptions{Axis: a, Repeats: 2, Gain: 0.1, Load: func(context.Context, int) (Run,
		error,
	) {
		if n++; n == 3 {
			cancel()
		}
		return Run{RequestsPerSecond: 1}, nil
	}})
	if err != nil || !s.Interrupted || len(s.Points) != 2 {
		t.Errorf("%+v, %v", s, err)
	}
	broken := errors.New("refused")
	if _, err = MakeSweep(t.Context(), SweepOptions{Axis: a, Repeats: 1, Load: func(context.Context, int) (Run,
		error,
	) {
		return Run{}, broken
	}}); !errors.Is(err, broken) {
		t.Errorf("the error of a load: %v", err)
	}
}

// TestSweepInNoise: loads that differ by more than the gain name no exact knee.
func TestSweepInNoise(t *testing.T) {
	s := sweepOf(t, "connections=1..1000", 3, 0.3, scalability.Law{Lambda: 20000, Sigma: 0.2}.At, nil)
	if s.Knee == nil || !strings.HasPrefix(s.Summary, "Roughly, since loads at the same value differ by") ||
		len(s.Notes) == 0 || !strings.Contains(s.Notes[0], "standard deviation") {
		t.Errorf("%s %q", s.Summary, s.Notes)
	}
}
