package engine

import (
	"fmt"
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/servers"
	"slowpath/internal/load/workload"
)

// TestVerify: values of the workload are right, and those of others are wrong.
func TestVerify(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	for _, secure := range []bool{false, true} {
		i := start(t, servers.Redis7015, fleet.Spec{TLS: secure})
		for _, size := range []int{100, 400_000} {
			for how, change := range map[string]func(*Options){
				"pipeline": func(o *Options) { o.Pipeline = 4 },
				"pool":     func(o *Options) { o.Pool, o.Workers, o.Pipeline = 2, 3, 1 },
			} {
				t.Run(fmt.Sprint(secure, size, how), func(t *testing.T) {
					if _, err := i.Do(t.Context(), "FLUSHALL"); err != nil {
						t.Fatal(err)
					}
					w, err := workload.Compile(workload.Options{
						Commands: []string{"set", "get"},
						Keys:     workload.Keys{High: 4},
						Sizes:    workload.FixedSize(size), Verify: true,
					})
					if err != nil {
						t.Fatal(err)
					}
					o := options(t, to(i))
					o.Workload, o.Verify, o.Requests = w, true, 300
					change(&o)
					total, r := sum(t, t.Context(), o)
					clean(t, total, r, o.Requests)
					if len(total.Mismatches) != 0 {
						t.Errorf("%v", total.Mismatches)
					}
					spoil(t, i)
					o.Workload, err = workload.Compile(workload.Options{
						Commands: []string{"get"},
						Keys:     workload.Keys{High: 4},
						Sizes:    workload.FixedSize(size), Verify: true,
					})
					if err != nil {
						t.Fatal(err)
					}
					total, r = sum(t, t.Context(), o)
					clean(t, total, r, o.Requests)
					var wrong int64
					for _, n := range total.Mismatches {
						wrong += n
					}
					if wrong != o.Requests {
						t.Errorf("%d of %d replies found wrong: %v", wrong, o.Requests, total.Mismatches)
					}
				})
			}
		}
	}
}

// spoil overwrites all keys.
func spoil(t *testing.T, i *fleet.Instance) {
	t.Helper()
	keys, err := i.Do(t.Context(), "KEYS", "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys.([]any) {
		if _, err := i.Do(t.Context(), "SET", k.(string), "not what was written"); err != nil {
			t.Fatal(err)
		}
	}
}
