package experiment

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// queue is a server whose latency rises to infinity at a rate, with noise and hiccups.
type queue struct {
	fullAt    float64 // calls per second
	noise     float64 // share of the latency
	hiccups   float64 // share of the loads in which something else stops it
	generator float64 // rate from which on the generator cannot keep its schedule; 0: none
	rng       *rand.Rand
}

// limitAt is the rate at which the mean p99 is d.
func (q *queue) limitAt(d time.Duration) float64 {
	return q.fullAt * (1 - float64(base)/float64(d))
}

const base = 100 * time.Microsecond

func (q *queue) load(_ context.Context, rate, _ float64) (Run, error) {
	ns := 10 * float64(time.Second)
	if rate < q.fullAt {
		ns = float64(base) / (1 - rate/q.fullAt) * math.Exp(q.noise*q.rng.NormFloat64())
	}
	if q.rng.Float64() < q.hiccups {
		ns += float64(50 * time.Millisecond)
	}
	r := Run{
		Requests: int64(rate), RequestsPerSecond: rate, Latency: Latency{P99Ns: int64(ns)},
		Service: Latency{P99Ns: int64(ns)},
	}
	if q.generator > 0 && rate >= q.generator {
		r.Latency.P99Ns += int64(5 * time.Millisecond)
		r.LateP99Ns = int64(5 * time.Millisecond)
	}
	return r, nil
}

func find(t *testing.T, q *queue, limit string, seed uint64) *Capacity {
	t.Helper()
	l, err := ParseLimit(limit)
	if err != nil {
		t.Fatal(err)
	}
	q.rng = rand.New(rand.NewPCG(seed, 5))
	c, err := FindCapacity(t.Context(), CapacityOptions{
		Limit: l, Start: 1000, MaxPerSecond: 1e7, Precision: 0.05, Confirm: 3,
		MaxRuns: 60, Load: q.load,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCapacityWithoutNoise(t *testing.T) {
	for _, full := range []float64{20, 999, 1000, 84000, 3e6} {
		q := &queue{fullAt: full}
		truth := q.limitAt(time.Millisecond)
		c := find(t, q, "p99<1ms", 1)
		if !c.Confirmed || c.Holds == nil || c.Fails == nil {
			t.Fatalf("%+v", c)
		}
		if !(c.Holds.PerSecond < truth && truth <= c.Fails.PerSecond*1.001) ||
			c.Fails.PerSecond > c.Holds.PerSecond*1.051 {
			t.Errorf("between %g and %g, in truth %g", c.Holds.PerSecond, c.Fails.PerSecond, truth)
		}
	}
}

// TestCapacityTakesItsTime: only the ends are tried for the whole duration, and what is said to be left comes true
// where no load contradicts another.
func TestCapacityTakesItsTime(t *testing.T) {
	const whole = 5*time.Second + 500*time.Millisecond
	q := &queue{fullAt: 84000, rng: rand.New(rand.NewPCG(1, 1))}
	l, _ := ParseLimit("p99<1ms")
	var steps []Step
	var began []time.Duration // of the steps
	var took time.Duration
	c, err := FindCapacity(t.Context(), CapacityOptions{
		Setup: Setup{DurationNs: 5e9, WarmUpNs: 5e8}, Limit: l,
		Start: 1000, MaxPerSecond: 1e7, Precision: 0.05, Confirm: 3, MaxRuns: 60,
		Load: func(ctx context.Context, rate, part float64) (Run, error) {
			if s := steps[len(steps)-1]; (part == 1) != (s.Purpose == PurposeConfirm) || rate*part*5 < 1000*0.999 {
				t.Errorf("%+v is %v of the duration", s, part)
			}
			took += time.Duration(float64(whole) * part)
			return q.load(ctx, rate, part)
		},
		Progress: func(s Step) { steps, began = append(steps, s), append(began, took) },
	})
	if err != nil || !c.Confirmed {
		t.Fatalf("%+v, %v", c, err)
	}
	t.Logf("%d loads, %v", len(steps), took)
	if took > 60*time.Second {
		t.Errorf("it takes %v", took)
	}
	for i, s := range steps {
		if left := took - began[i]; s.Left < left*7/10-whole/5 || s.Left > left*3/2+whole/5 {
			t.Errorf("load %d, %s: %v are said to be left, and %v are", s.Load, s.Purpose, s.Left, left)
		}
	}
}

// TestCapacityWidens: where loads do not agree, the bracket is as wide as they need, and says so.
func TestCapacityWidens(t *testing.T) {
	widened := 0
	for seed := range uint64(100) {
		c := find(t, &queue{fullAt: 84000, noise: 0.8}, "p99<1ms", seed)
		if c.Precision < 0.05 || c.Precision > widest {
			t.Fatalf("precision %v", c.Precision)
		}
		said := strings.Contains(strings.Join(c.Notes, "\n"), "since loads at closer rates")
		if c.Precision > 0.05 {
			widened++
		}
		if said != (c.Precision > 0.05 && c.Holds != nil && c.Fails != nil &&
			c.Fails.PerSecond > c.Holds.PerSecond*1.05*(1+1e-9)) {
			t.Errorf("precision %v: %q", c.Precision, c.Notes)
		}
	}
	if widened == 0 {
		t.Error("none was widened")
	}
}

// TestCapacityWithNoise: latencies that vary by a tenth, and a hiccup in one of twenty loads, still give a bracket near
// the truth.
func TestCapacityWithNoise(t *testing.T) {
	const searches = 300
	confirmed, near, runs := 0, 0, 0
	for seed := range uint64(searches) {
		q := &queue{fullAt: 84000, noise: 0.1, hiccups: 0.05}
		truth := q.limitAt(time.Millisecond)
		c := find(t, q, "p99<1ms", seed)
		runs += len(c.Trials)
		if c.Holds != nil && c.Fails != nil && c.Holds.PerSecond >= c.Fails.PerSecond {
			t.Fatalf("the bracket is upside down: %s", c.Summary)
		}
		if c.Confirmed {
			confirmed++
			if c.Holds.PerSecond > truth*0.92 && c.Holds.PerSecond < truth*1.03 {
				near++
			}
		}
	}
	t.Logf("%d of %d confirmed, %d of them near the truth; %d loads each", confirmed, searches, near, runs/searches)
	if confirmed < searches*95/100 || near < confirmed*95/100 {
		t.Errorf("%d of %d confirmed, %d near the truth", confirmed, searches, near)
	}
}

func TestCapacityOfNone(t *testing.T) {
	c := find(t, &queue{fullAt: 1e6}, "p99<50us", 1)
	if c.Holds != nil || c.Fails == nil || !strings.HasPrefix(c.Summary, "No rate from 1/s holds p99<50µs") {
		t.Error(c.Summary)
	}
}

// TestCapacityOfNoise: where hiccups decide and not the rate, no rate is said to be confirmed, and none with too few
// calls is found.
func TestCapacityOfNoise(t *testing.T) {
	confirmed := 0
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 6))
		l, _ := ParseLimit("p99<5ms")
		c, err := FindCapacity(t.Context(), CapacityOptions{
			Setup: Setup{DurationNs: int64(time.Second)}, Limit: l,
			Start: 1000, MaxPerSecond: 1e6, Precision: 0.05,
			Confirm: 3, MaxRuns: 80, Load: func(_ context.Context, rate, _ float64) (Run, error) {
				ns := int64(float64(10*time.Millisecond) * math.Exp(rng.NormFloat64()))
				return Run{Requests: int64(rate), Latency: Latency{P99Ns: ns}, Service: Latency{P99Ns: ns}}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, tr := range c.Trials {
			if tr.PerSecond < 100 {
				t.Fatalf("a load of %g calls was made to find a p99", tr.PerSecond)
			}
		}
		if c.Confirmed && c.Holds != nil {
			confirmed++
		}
	}
	t.Logf("%d of 100 confirmed", confirmed)
	if confirmed > 15 {
		t.Errorf("%d of 100 searches in noise found a rate and said it was confirmed", confirmed)
	}
}

// TestCapacityOfGenerator: what the generator cannot do is not said of the server.
func TestCapacityOfGenerator(t *testing.T) {
	c := find(t, &queue{fullAt: 1e6, generator: 60000}, "p99<1ms", 1)
	if !c.Confirmed || c.Holds.PerSecond >= 60000 || c.Holds.PerSecond < 57000 || c.Fails.Outcome != Untested ||
		!strings.Contains(c.Summary, "could not be tested") {
		t.Errorf("%s", c.Summary)
	}
	for _, tr := range c.Trials {
		if tr.Outcome == Fails {
			t.Errorf("taken for a failure of the server: %+v", tr)
		}
	}
	if c := find(t, &queue{fullAt: 1e6, generator: 1}, "p99<1ms", 1); c.Holds != nil || !strings.HasPrefix(c.Summary,
		"No rate could be tested") {
		t.Errorf("%s", c.Summary)
	}
}

// TestCapacityEnds: a search ends at the highest rate, with its loads, and with its context.
func TestCapacityEnds(t *testing.T) {
	q := &queue{fullAt: 1e9, rng: rand.New(rand.NewPCG(1, 1))}
	l, _ := ParseLimit("p99<1ms")
	o := CapacityOptions{
		Limit: l, Start: 1000, MaxPerSecond: 50000, Precision: 0.05, Confirm: 3, MaxRuns: 60,
		Load: q.load,
	}
	c, err := FindCapacity(t.Context(), o)
	if err != nil || c.Holds == nil || c.Holds.PerSecond != 50000 || c.Fails != nil || !c.Confirmed {
		t.Errorf("%+v, %v", c, err)
	}
	o.MaxRuns = 3
	if c, err = FindCapacity(t.Context(), o); err != nil || len(c.Trials) != 3 || c.Confirmed || len(c.Notes) == 0 {
		t.Errorf("%+v, %v", c, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	o.Load = func(ctx context.Context, rate, part float64) (Run, error) {
		if rate > 3000 {
			cancel()
		}
		return q.load(ctx, rate, part)
	}
	if c, err = FindCapacity(ctx, o); err != nil || !c.Interrupted || c.Holds == nil || c.Holds.PerSecond != 2000 {
		t.Errorf("%+v, %v", c, err)
	}
	broken := errors.New("refused")
	o.Load = func(context.Context, float64, float64) (Run, error) { return Run{}, broken }
	if _, err = FindCapacity(t.Context(), o); !errors.Is(err, broken) {
		t.Errorf("the error of a load: %v", err)
	}
}
