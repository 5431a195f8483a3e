package engine

import (
	"testing"
	"time"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/servers"
)

// TestPool: clients that share fewer connections than they are wait for them, and the wait is part of their calls'
// time.
func TestPool(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	i := start(t, servers.Redis7015, fleet.Spec{})
	for name, change := range map[string]func(*Options){
		"shared": func(o *Options) { o.Pool, o.Workers = 2, 20 },
		"own":    func(o *Options) { o.Pool, o.Workers = 20, 20 },
		"cold":   func(o *Options) { o.Pool, o.Workers, o.ColdStart = 2, 20, true },
		"open": func(o *Options) {
			o.Pool, o.Workers, o.Requests, o.Duration = 2, 20, 0, 200*time.Millisecond
			o.Schedule = []Stretch{{Lasts: o.Duration, From: 2500, To: 2500}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t, to(i))
			o.Pipeline = 1
			change(&o)
			before := served(t, i, "get")
			total, r := sum(t, t.Context(), o)
			calls := total.Calls()
			clean(t, total, r, calls)
			if n := served(t, i, "get") - before; n != calls || o.Open() && calls+r.Unsent != 500 || !o.Open() &&
				calls != o.Requests {
				t.Errorf("%d calls, %d unsent; the server saw %d", calls, r.Unsent, n)
			}
			op := total.Ops[0]
			if total.PoolWait.TotalCount() != calls || total.Dials.Done == 0 || total.Dials.Done > int64(o.Pool) {
				t.Errorf("%d calls, %d waits, %d dials", calls, total.PoolWait.TotalCount(), total.Dials.Done)
			}
			if op.Response.Mean() < total.PoolWait.Mean() || op.Response.Mean() < op.Service.Mean() {
				t.Errorf("response %f, service %f, wait %f", op.Response.Mean(), op.Service.Mean(),
					total.PoolWait.Mean())
			}
			// With 20 clients and 2 connections 18 wait at any time: 9 times as long as the others talk to the server.
			if name == "shared" && total.PoolWait.Mean() < 2*op.Service.Mean() {
				t.Errorf("service %f, wait %f", op.Service.Mean(), total.PoolWait.Mean())
			}
		})
	}
}
