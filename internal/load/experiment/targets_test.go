package experiment

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"slowpath/internal/load/bottleneck"
)

// service is targets that are so fast, on a machine whose speed drifts and that is noisy.
type service struct {
	speeds []float64
	nodes  []int
	drift  float64 // by load, as a factor
	noise  float64
	rng    *rand.Rand
	loads  []int // targets in the order of their loads
	fails  func(round, target int) bool
}

func (s *service) options(rounds int) TargetsOptions {
	round := 0
	s.rng = rand.New(rand.NewPCG(1, 2))
	return TargetsOptions{
		Targets: len(s.speeds), Rounds: rounds,
		Progress: func(r, _ int) { round = r },
		Load: func(_ context.Context, i int) (Run, error) {
			s.loads = append(s.loads, i)
			if s.fails != nil && s.fails(round, i) {
				return Run{}, errors.New("connection refused")
			}
			v := s.speeds[i] * math.Pow(s.drift, float64(len(s.loads))) * math.Exp(s.noise*s.rng.NormFloat64())
			return Run{
				Requests: 100, RequestsPerSecond: v, Latency: Latency{P50Ns: int64(5e9 / v), P99Ns: int64(5e10 / v)},
				LimitedBy: bottleneck.ByServerCPU, Sentence: "server main thread at 99 %",
			}, nil
		},
		Target: func(i int) ComparedTarget {
			return ComparedTarget{Address: TargetName(i), Kind: Standalone, Nodes: s.nodes[i]}
		},
	}
}

func around(t *testing.T, what string, e *Estimate, want, tolerance float64) {
	t.Helper()
	if e == nil || e.Low == nil || e.High == nil || *e.Low > want || *e.High < want ||
		math.Abs(e.Value-want) > tolerance || *e.High-*e.Low > 4*tolerance {
		t.Errorf("%s: %+v, want %v", what, e, want)
	}
}

// TestTargetsOfADriftingMachine: what differs is found although the machine gets slower by a third meanwhile, which is
// more than what differs. Loads of the same round are compared.
func TestTargetsOfADriftingMachine(t *testing.T) {
	s := &service{speeds: []float64{100_000, 240_000, 80_000}, nodes: []int{1, 3, 0}, drift: 0.99, noise: 0.01}
	c, err := MakeTargets(t.Context(), s.options(12))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.loads[:9]; !slices.Equal(got, []int{0, 1, 2, 2, 1, 0, 0, 1, 2}) {
		t.Errorf("not in turns: %v", got)
	}
	if n := len(s.loads); n != 39 || len(c.Targets[2].Runs) != 12 || c.Targets[0].Runs[0].Round != 1 {
		t.Errorf("%d loads; %+v", n, c.Targets[2].Runs)
	}
	b, proxy := c.Targets[1], c.Targets[2]
	around(t, "B", &b.Change.RequestsPerSecond, 1.4, 0.05)
	around(t, "B per node", b.PerNode, 0.8, 0.02)
	around(t, "C", &proxy.Change.RequestsPerSecond, -0.2, 0.02)
	around(t, "p99 of C", &proxy.Change.P99Ns, 0.25, 0.03)
	if c.Targets[0].Change != nil || c.Targets[0].PerNode != nil || proxy.PerNode != nil {
		t.Errorf("%+v", c.Targets)
	}
	if !strings.HasPrefix(c.Summary, "Calls per second against A (standalone): B (standalone) 14") ||
		!strings.Contains(c.Summary, "% of A's (") ||
		!strings.Contains(c.Summary, " %); C (standalone) 2") || !strings.Contains(c.Summary, "% fewer (") {
		t.Error(c.Summary)
	}
	if notes := strings.Join(c.Notes, "\n"); !strings.Contains(notes, "not steady") ||
		strings.Contains(notes, "differ too much") {
		t.Error(notes)
	}
}

// TestNoisyTargets: rounds that tell nothing are not left to the reader to notice.
func TestNoisyTargets(t *testing.T) {
	s := &service{speeds: []float64{1e5, 1e5}, nodes: []int{1, 1}, drift: 1, noise: 1}
	c, err := MakeTargets(t.Context(), s.options(6))
	want := "The rounds differ too much for a comparison of B with A"
	if err != nil || !strings.HasPrefix(strings.Join(c.Notes, "\n"), want) {
		t.Errorf("%q, %v", c.Notes, err)
	}
}

// TestEqualTargets: where nothing differs, that is said in most comparisons; the interval has 95 %.
func TestEqualTargets(t *testing.T) {
	rng, shown := rand.New(rand.NewPCG(3, 4)), 0
	for range 200 {
		s := &service{speeds: []float64{1e5, 1e5}, nodes: []int{1, 1}, drift: 1, noise: 0.05}
		o := s.options(6)
		s.rng = rng
		c, err := MakeTargets(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(c.Summary, "no difference shown") {
			shown++
		}
	}
	if shown > 20 {
		t.Errorf("a difference in %d of 200 comparisons of equal targets", shown)
	}
}

// TestTargetThatIsDown: the others go on, and the rounds that it has are compared with those of the same number.
func TestTargetThatIsDown(t *testing.T) {
	s := &service{
		speeds: []float64{1e5, 5e4, 1e5}, nodes: []int{1, 1, 1}, drift: 1, noise: 0.001,
		fails: func(round, target int) bool { return target == 1 && round >= 3 || target == 2 },
	}
	c, err := MakeTargets(t.Context(), s.options(6))
	if err != nil {
		t.Fatal(err)
	}
	b, gone := c.Targets[1], c.Targets[2]
	if len(c.Targets[0].Runs) != 6 || len(b.Runs) != 2 || len(b.Failures) != 4 || b.Failures[0].Round != 3 ||
		b.Failures[0].Error != "connection refused" || len(gone.Runs) != 0 || gone.RequestsPerSecond != nil {
		t.Errorf("%+v", c.Targets)
	}
	if v := b.Change.RequestsPerSecond; math.Abs(v.Value+0.5) > 0.01 || v.Low != nil {
		t.Errorf("%+v", v)
	}
	if want := "50 % fewer, down in 4 of 6 rounds; C (standalone) was down."; !strings.HasSuffix(c.Summary, want) {
		t.Error(c.Summary)
	}
	s.fails = func(int, int) bool { return true }
	if _, err := MakeTargets(t.Context(), s.options(2)); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("all are down: %v", err)
	}
}

// TestTargetsInterrupted: the loads that were made are the result; the one that was ended is not among them.
func TestTargetsInterrupted(t *testing.T) {
	s := &service{speeds: []float64{1e5, 2e5}, nodes: []int{1, 1}, drift: 1}
	o := s.options(6)
	ctx, cancel := context.WithCancel(t.Context())
	load := o.Load
	o.Load = func(ctx context.Context, i int) (Run, error) {
		if len(s.loads) == 5 {
			cancel()
		}
		return load(ctx, i)
	}
	c, err := MakeTargets(ctx, o)
	if err != nil || !c.Interrupted || len(c.Targets[0].Runs) != 2 || len(c.Targets[1].Runs) != 1 ||
		!strings.Contains(strings.Join(c.Notes, "\n"), "2 of 6 rounds") {
		t.Errorf("%+v, %v", c, err)
	}
	s.loads = nil
	if _, err := MakeTargets(ctx, s.options(6)); !errors.Is(err, context.Canceled) {
		t.Errorf("no load: %v", err)
	}
}

// TestTargetsOfTheGenerator: what the generator limited is said before the numbers.
func TestTargetsOfTheGenerator(t *testing.T) {
	for by, want := range map[string]string{
		bottleneck.ByGeneratorCPU: "The generator was the limit at B:",
		bottleneck.BySharedCPU:    "At B the generator, the servers",
		bottleneck.ByServerCPU:    "",
	} {
		s := &service{speeds: []float64{1e5, 2e5}, nodes: []int{1, 1}, drift: 1}
		o := s.options(6)
		load := o.Load
		o.Load = func(ctx context.Context, i int) (Run, error) {
			r, err := load(ctx, i)
			if i == 1 {
				r.LimitedBy, r.GeneratorLimited = by, by == bottleneck.ByGeneratorCPU
			}
			return r, err
		}
		c, err := MakeTargets(t.Context(), o)
		if err != nil || !strings.HasPrefix(c.Caveat, want) || (want == "") != (c.Caveat == "") ||
			c.Targets[1].LimitedBy != by || c.Targets[1].LimitedRounds != 6 {
			t.Errorf("%s: %q, %+v, %v", by, c.Caveat, c.Targets[1], err)
		}
	}
}

// TestSameTargets: addresses of one server are not taken for two.
func TestSameTargets(t *testing.T) {
	for _, c := range []struct {
		kinds [2]string
		want  string
	}{
		{[2]string{Standalone, Standalone}, "A and B are the same server"},
		{[2]string{Standalone, Proxy}, "B (proxy) passes calls on to the server of A (standalone)"},
		{[2]string{Proxy, Standalone}, "A (proxy) passes calls on to the server of B (standalone)"},
		{[2]string{Cluster, Cluster}, "A and B are the same cluster"},
	} {
		s := &service{speeds: []float64{1e5, 1e5}, nodes: []int{1, 1}, drift: 1}
		o := s.options(1)
		o.Target = func(i int) ComparedTarget { return ComparedTarget{Kind: c.kinds[i], Identity: "run id"} }
		got, err := MakeTargets(t.Context(), o)
		if err != nil || !strings.Contains(strings.Join(got.Notes, "\n"), c.want) {
			t.Errorf("%v: %q, %v", c.kinds, got.Notes, err)
		}
	}
}
