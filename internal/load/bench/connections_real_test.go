//go:build linux

package bench

import (
	"testing"
	"time"

	"slowpath/internal/house/needs"
	"slowpath/internal/load/bottleneck"
	"slowpath/internal/load/workload"
)

// TestPoolIsTheLimit: the workers of incident 003 wait for a pool that is too small, and do not for one of their
// number. The calls take time without work for anybody, as those to a server far away do.
func TestPoolIsTheLimit(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	i := redis(t)
	for _, pool := range []int{10, 200} {
		o := options(t, i)
		w, err := workload.Compile(workload.Options{
			Commands: []string{"BLPOP {key} 0.3"},
			Keys:     workload.Keys{High: 9},
		})
		if err != nil {
			t.Fatal(err)
		}
		o.Load.Workload, o.Load.Pipeline, o.Load.Pool, o.Load.Workers, o.Load.Duration = w, 1, pool, 200, time.Second
		r, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if r.PoolWait == nil || r.Settings.Pool != pool || r.Settings.Connections != pool ||
			r.Dials["whole"].Calls != int64(pool) {
			t.Fatalf("pool of %d: wait %+v, settings %+v, %d dials", pool, r.PoolWait, r.Settings,
				r.Dials["whole"].Calls)
		}
		waits := r.PoolWait.MeanNs > r.Service.MeanNs
		if small := pool < 200; waits != small || r.Latency.MeanNs < r.Service.MeanNs {
			t.Errorf("pool of %d: waits %v for calls of %v", pool, time.Duration(r.PoolWait.MeanNs),
				time.Duration(r.Service.MeanNs))
		}
		// On a machine that others fill the CPUs are named first.
		if named := r.LimitedBy == bottleneck.ByPool; named != (pool < 200) && r.LimitedBy != bottleneck.BySharedCPU {
			t.Errorf("pool of %d: limited by %s: %s", pool, r.LimitedBy, r.Bottleneck.Sentence)
		}
	}
}

// TestSubscribersOfALoad: what they got, after the end too, is in the result, and the load ends.
func TestSubscribersOfALoad(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	i := redis(t)
	for _, threads := range []int{1, 2} {
		o := options(t, i)
		w, err := workload.Compile(workload.Options{Commands: []string{"publish"}})
		if err != nil {
			t.Fatal(err)
		}
		o.Load.Workload, o.Load.Subscribers, o.Load.Requests, o.Load.Threads = w, 2, 300, threads
		r, err := Run(t.Context(), o)
		if err != nil || r.Delivered != 600 {
			t.Errorf("%d threads: %v, %+v", threads, err, r)
		}
	}
}
