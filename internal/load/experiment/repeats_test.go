package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func repeatsOf(t *testing.T, n int, speed float64, settings any, b *Baseline, seed uint64) *Repeats {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 9))
	s, err := MakeRepeats(t.Context(), RepeatsOptions{
		Setup: Setup{Version: "1", Settings: settings}, Repeats: n,
		Baseline: b, Load: func(context.Context) (Run, error) {
			x := speed * (1 + 0.01*rng.NormFloat64())
			ns := int64(1e12 / x)
			return Run{
				RequestsPerSecond: x, Latency: Latency{P50Ns: ns, P99Ns: 2 * ns, P999Ns: 3 * ns},
				CPUSecondsPerMillion: 5 + rng.Float64(),
			}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// baselineOf goes through a file's form.
func baselineOf(t *testing.T, s *Repeats) *Baseline {
	t.Helper()
	body, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	r, err := ParseRepeats(body)
	if err != nil {
		t.Fatal(err)
	}
	return &Baseline{Name: "old.json", Setup: r.Setup, Runs: r.Runs}
}

func TestCompare(t *testing.T) {
	old := baselineOf(t, repeatsOf(t, 8, 1e5, map[string]any{"connections": 50}, nil, 1))
	for _, c := range []struct {
		speed   float64
		repeats int
		want    string
	}{{1e5, 8, NoDifference}, {1.1e5, 8, Faster}, {0.9e5, 8, Slower}, {2e5, 3, TooFew}} {
		s := repeatsOf(t, c.repeats, c.speed, map[string]any{"connections": 50}, old, 2)
		if s.Comparison.Verdict != c.want || len(s.Comparison.Differences) != 0 {
			t.Errorf("%g/s: %s, want %s: %s", c.speed, s.Comparison.Verdict, c.want, s.Summary)
		}
		if _, err := json.Marshal(s); err != nil {
			t.Error(err)
		}
	}
}

func TestCompareNamesWhatDiffers(t *testing.T) {
	old := baselineOf(t, repeatsOf(t, 5, 1e5, map[string]any{
		"connections": 50,
		"workload":    map[string]any{"command": []string{"get"}},
	}, nil, 1))
	s := repeatsOf(t, 5, 1e5, map[string]any{
		"connections": 100,
		"workload":    map[string]any{"command": []string{"set"}},
	}, old, 2)
	want := []Difference{{"settings.connections", "50", "100"}, {"settings.workload.command", `["get"]`, `["set"]`}}
	if !slices.Equal(s.Comparison.Differences, want) {
		t.Errorf("%+v", s.Comparison.Differences)
	}
}

func TestFewRepeatsAreSaid(t *testing.T) {
	s := repeatsOf(t, 3, 1e5, nil, nil, 1)
	if len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "6 have") || s.Metrics[0].Median.Low != nil {
		t.Errorf("%+v", s)
	}
	if s = repeatsOf(t, 6, 1e5, nil, nil, 1); len(s.Notes) != 0 || s.Metrics[0].Median.Low == nil {
		t.Errorf("%+v", s)
	}
}

func FuzzParseRepeats(f *testing.F) {
	f.Add([]byte(`{"schema":"slowpath.repeats/v1","runs":[{"requests_per_second":1}]}`))
	f.Add([]byte(`{"schema":"slowpath.bench/v1"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := ParseRepeats(body)
		switch {
		case err != nil && !errors.Is(err, ErrNotBaseline):
			t.Error(err)
		case err == nil:
			s := &Repeats{Runs: slices.Clone(r.Runs)}
			b := Baseline{Setup: r.Setup, Runs: r.Runs}
			if _, err := json.Marshal(b.compare(s, false)); err != nil {
				t.Error(err)
			}
		}
	})
}
