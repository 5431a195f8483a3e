package matrix

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"slowpath/internal/load/experiment"
	"slowpath/internal/report/layout"
)

// swept is a sweep whose rows have the calls per second of each of their rounds.
func swept(rounds int, rates map[string][]float64) *PoolSweep {
	plan := PoolPlan{Clients: []string{"jedis"}, Modes: PoolModes(), Sizes: []int{100, 200, 1000}}
	s := &PoolSweep{
		Schema: PoolSchema, Version: "test", Start: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC), CPUs: 2,
		Server: "redis-7.0.15", Topology: Standalone, Settings: FullPools(),
	}
	s.Settings.Workers, s.Settings.Rounds = 1000, rounds
	s.Rows = plan.Rows(s.Settings)
	for i := range s.Rows {
		r := &s.Rows[i]
		for n, rate := range rates[fmt.Sprint(r.Mode, r.Pool)] {
			r.add(n+1, Cell{
				Library: "jedis 7.5.3", Calls: 100, Errors: int64(n % 2), LastError: "Read timed out",
				ErrorKinds:        map[string]int64{"timeout": int64(n % 2)},
				RequestsPerSecond: rate, MeanNs: 2e6, P50Ns: 1e6, P99Ns: 9e6,
				LimitedBy: []string{"server-cpu", "pool", "pool"}[n%3],
			}, r.Pool)
		}
	}
	s.conclude()
	return s
}

// near are six rounds around a rate.
func near(rate float64) []float64 {
	return []float64{rate * 0.99, rate, rate * 1.01, rate * 0.995, rate * 1.005, rate}
}

// TestBestPool: a size is the best where the interval of the ratio says so, and only there. What makes rounds differ is
// no difference between rows.
func TestBestPool(t *testing.T) {
	wide := []float64{9000, 30000, 15000, 25000, 12000, 40000}
	alike := make([]float64, len(wide))
	for i, rate := range wide {
		alike[i] = rate / (1.4 + 0.02*float64(i))
	}
	for name, test := range map[string]struct {
		rounds int
		rates  map[string][]float64
		want   []string
	}{
		"apart": {6, map[string][]float64{
			"borrow100": near(26000), "borrow200": {26000, 26200, 25900, 26100, 25950, 26300},
			"borrow1000": near(20000), "per-thread100": near(60000),
		}, []string{
			"jedis, borrow per call: 200 connections: 1.3x (1.3 to 1.3) the calls of 1 000; " +
				"no difference from 100 shown.",
			"jedis: a connection per thread: 2.3x (2.3 to 2.3) the calls of borrowing per call (100 callers with " +
				"one each, against 1 000 that share 200 connections).",
		}},
		"overlapping": {6, map[string][]float64{
			"borrow100": wide, "borrow1000": near(20000), "per-thread100": near(21000),
		}, []string{
			"jedis, borrow per call: no size is shown to be better than another.",
			"jedis: no difference shown between borrowing per call and a connection per thread (100 callers with one " +
				"each, against 1 000 that share 100 connections).",
		}},
		"rounds that differ": {6, map[string][]float64{"borrow100": wide, "borrow1000": alike}, []string{
			"jedis, borrow per call: 100 connections: 1.4x (1.4 to 1.5) the calls of 1 000.",
		}},
		"too few rounds": {5, map[string][]float64{"borrow100": near(26000)[:5], "borrow1000": near(10)[:5]}, nil},
		"none":           {6, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := swept(test.rounds, test.rates)
			var said []string
			for _, b := range s.Best {
				said = append(said, b.Sentence)
				if (b.Pool == 0) != strings.Contains(b.Sentence, ": no ") {
					t.Errorf("pool %d: %s", b.Pool, b.Sentence)
				}
			}
			if !slices.Equal(said, test.want) {
				t.Errorf("%q, want %q", said, test.want)
			}
			if few := strings.Contains(strings.Join(s.Notes, " "), "no 95 % interval"); few != (test.rounds == 5) {
				t.Errorf("notes %q", s.Notes)
			}
		})
	}
}

func TestPoolRowOfRounds(t *testing.T) {
	r := swept(6, map[string][]float64{"borrow100": near(26000)}).Rows[0]
	if r.RequestsPerSecond.Value != 26000 || *r.RequestsPerSecond.Low > 25800 || r.MeanNs.Value != 2e6 ||
		r.Calls != 600 || r.Errors != 3 || r.ErrorKinds["timeout"] != 3 || r.LimitedBy != "pool" ||
		r.LimitedRounds != 4 || r.Connections != 100 {
		t.Errorf("%+v", r)
	}
}

// TestPoolStillConnecting: callers that keep a connection have one each, else the row is not what it says.
func TestPoolStillConnecting(t *testing.T) {
	s := swept(6, map[string][]float64{"per-thread1000": near(20000), "borrow1000": near(20000)})
	for i := range s.Rows {
		for n := range s.Rows[i].Runs {
			s.Rows[i].Runs[n].Connections = 667
		}
	}
	s.conclude()
	if len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "per-thread, pool of 1000: the server had 667 of its 1000") {
		t.Errorf("%q", s.Notes)
	}
}

// TestPoolPlan: threads with connections of their own are as many as those, and what a library cannot do is said once.
func TestPoolPlan(t *testing.T) {
	s := FullPools()
	s.Workers = 50
	p := PoolPlan{Clients: []string{"jedis", "node-redis", "lettuce-7"}, Modes: PoolModes(), Sizes: []int{10, 20}}
	var got []string
	for _, r := range p.Rows(s) {
		got = append(got, fmt.Sprintf("%s %s %d %d %.9s", r.Client, r.Mode, r.Pool, r.Callers, r.Empty))
	}
	want := []string{
		"jedis borrow 10 50 ", "jedis borrow 20 50 ", "jedis per-thread 10 10 ", "jedis per-thread 20 20 ",
		"node-redis borrow 10 50 ", "node-redis borrow 20 50 ", "node-redis per-thread 10 10 a caller ",
		"lettuce-7 borrow 10 50 its calle", "lettuce-7 per-thread 10 10 a caller ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for _, bad := range []func(*PoolSettings, *PoolPlan){
		func(_ *PoolSettings, p *PoolPlan) { p.Sizes = []int{1, mostWorkers + 1} },
		func(s *PoolSettings, _ *PoolPlan) { s.Rounds = 0 },
		func(s *PoolSettings, _ *PoolPlan) { s.Duration = 0 },
		func(s *PoolSettings, _ *PoolPlan) { s.Workers = 0 },
	} {
		one, plan := s, p
		bad(&one, &plan)
		if err := one.Check(plan); !errors.Is(err, ErrSettings) {
			t.Errorf("%+v: %v", one, err)
		}
	}
	if err := s.Check(p); err != nil {
		t.Error(err)
	}
}

// TestWaits: of 1000 callers of which 100 can have a connection, a call waits for nine tenths of its time.
func TestWaits(t *testing.T) {
	for _, test := range []struct {
		callers, connections int
		want                 time.Duration
	}{{1000, 100, 9 * time.Millisecond}, {100, 100, 0}, {100, 0, 0}, {10, 20, 0}} {
		if got := waits(10*time.Millisecond, test.callers, test.connections); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}

func TestPoolTextGolden(t *testing.T) {
	s := swept(6, map[string][]float64{
		"borrow100": near(26000), "borrow1000": near(20000),
		"per-thread100": near(60000), "per-thread1000": near(51000),
	})
	s.Rows[1].Failures = []experiment.Failure{{Round: 2, Error: "the client jedis ended"}}
	s.Rows = append(s.Rows, PoolPlan{Clients: []string{"rueidis"}, Modes: []string{Borrow}, Sizes: []int{5}}.Rows(
		s.Settings)...)
	for _, style := range []layout.Style{{Width: 80}, {Width: 160, Unicode: true}} {
		s.Interrupted = style.Unicode
		var buf bytes.Buffer
		if err := PoolText(&buf, s, style); err != nil {
			t.Fatal(err)
		}
		golden(t, "pool", style, buf.Bytes())
	}
}
