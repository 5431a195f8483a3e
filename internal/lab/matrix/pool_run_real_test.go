//go:build linux

package matrix

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/servers"
)

// sweep makes a sweep of a real client on a real server.
func sweep(t *testing.T, ctx context.Context, plan PoolPlan, rounds int, done func(text string)) *PoolSweep {
	t.Helper()
	o := options(t, Plan{Clients: []string{"go-redis-v9"}}) // it alone is measured
	s := &PoolSweep{Server: string(servers.Redis7015), Topology: Standalone, Settings: FullPools()}
	s.Settings.Warmup, s.Settings.Duration, s.Settings.Rounds = 200*time.Millisecond, 300*time.Millisecond, rounds
	s.Settings.Workers = 8
	s.Rows = plan.Rows(s.Settings)
	o.Done = done
	if err := SweepPools(ctx, o, s); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSweepPools: the server has no more connections than the pool allows, a row for each size and use, in rounds.
func TestSweepPools(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	var order []string
	s := sweep(t, t.Context(), PoolPlan{
		Clients: []string{"go-redis-v9", "rueidis"}, Modes: PoolModes(), Sizes: []int{2, 8},
	}, 2, func(text string) { order = append(order, text) })
	if s.Interrupted || len(s.Rows) != 6 || len(order) != 8 || !strings.Contains(order[0], "pool of 2: ") ||
		!strings.Contains(order[4], "pool of 8: ") {
		t.Fatalf("%v: %+v", order, s)
	}
	for i, r := range s.Rows {
		if i >= 4 {
			if r.Empty == "" || r.Measured() {
				t.Errorf("%s: %+v", r, r)
			}
			continue
		}
		if len(r.Runs) != 2 || len(r.Failures) > 0 || r.Errors > 0 || r.LimitedBy == "" ||
			r.RequestsPerSecond.Value <= 0 || r.P99Ns.Value < r.P50Ns.Value || r.MeanNs.Value <= 0 || r.Library == "" {
			t.Errorf("%s: %d runs, failures %v, %d errors, limited by %q, %v calls per second, p99 %v, p50 %v, %q", r,
				len(r.Runs), r.Failures, r.Errors, r.LimitedBy, r.RequestsPerSecond, r.P99Ns, r.P50Ns, r.Library)
		}
		// Where callers borrow, a pool opens a connection when none is free: on a busy machine it may need fewer.
		// Callers with connections of their own may still be opening them there; a note says so.
		opening := slices.ContainsFunc(s.Notes, func(note string) bool { return strings.HasPrefix(note, r.String()) })
		if r.Connections > r.Pool || r.Connections < 1 || r.Mode == PerThread && r.Connections != r.Pool && !opening {
			t.Errorf("%s: %d connections", r, r.Connections)
		}
	}
}

// TestSweepPoolsIsEnded: the rounds so far are kept, and a program that is not there is a row with the reason.
func TestSweepPoolsIsEnded(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	ctx, stop := context.WithCancel(t.Context())
	s := sweep(t, ctx, PoolPlan{
		Clients: []string{"./nosuch", "go-redis-v9"}, Modes: []string{Borrow}, Sizes: []int{4, 8},
	}, 3, func(text string) {
		if strings.Contains(text, "go-redis-v9") {
			stop()
		}
	})
	if !s.Interrupted || !s.Measured() || len(s.Rows[2].Runs) != 1 || s.Rows[3].Measured() ||
		len(s.Rows[0].Failures) != 1 {
		t.Errorf("%+v", s.Rows)
	}
}
