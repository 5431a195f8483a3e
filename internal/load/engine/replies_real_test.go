package engine

import (
	"maps"
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/servers"
	"slowpath/internal/load/workload"
)

// TestRepliesWithoutContent: an empty reply to a read is a miss in any form, and to a write never; the
// errors of commands in a transaction are errors of its call.
func TestRepliesWithoutContent(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	i := start(t, servers.Redis7015, fleet.Spec{})
	const calls = 100
	for _, c := range []struct {
		command string
		misses  int64
		errors  map[string]int64
	}{
		{"GET none:{key}", calls, nil},
		{"MGET none:{key:3}", calls, nil},
		{"MGET some none:{key}", 0, nil},
		{"HGETALL none:{key}", calls, nil},
		{"HMGET none:{key} a b", calls, nil},
		{"LRANGE none:{key} 0 9", calls, nil},
		{"ZPOPMIN none:{key}", calls, nil},
		{"GEOPOS none:{key} a", calls, nil},
		{"SET none:{key} x XX", 0, nil},
		{"EXISTS none:{key}", 0, nil},
		{`EVAL 'return redis.call("GET", KEYS[1])' 1 none:{key}`, calls, nil},
		{`EVAL 'return redis.call("SET", KEYS[1], "x", "XX")' 1 none:{key}`, 0, nil},
		{"MULTI; GET none:{key}; LRANGE none:l:{same} 0 9; EXEC", calls, nil},
		{"MULTI; SET text:{key} x; INCR text:{same}; EXEC", 0, map[string]int64{"ERR": calls}},
	} {
		for _, protocol := range []int{2, 3} {
			for how, change := range map[string]func(*Options){
				"event loop": func(*Options) {},
				"pool":       func(o *Options) { o.Pool, o.Workers, o.Pipeline = 2, 4, 1 },
			} {
				if _, err := i.Do(t.Context(), "SET", workload.Prefix+"some", "x"); err != nil {
					t.Fatal(err)
				}
				o := options(t, to(i))
				o.Target.Protocol, o.Workload, o.Requests = protocol, simple(t, c.command, 3), calls
				change(&o)
				total, _ := sum(t, t.Context(), o)
				if got := total.Ops[0].Misses; got != c.misses {
					t.Errorf("%s, RESP%d, %s: %d misses, want %d", c.command, protocol, how, got, c.misses)
				}
				if !maps.Equal(total.Errors, c.errors) {
					t.Errorf("%s, RESP%d, %s: errors %v, want %v", c.command, protocol, how, total.Errors, c.errors)
				}
			}
		}
	}
}
