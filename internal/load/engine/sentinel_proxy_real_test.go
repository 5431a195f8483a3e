//go:build linux

package engine_test

import (
	"context"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/load/engine"
)

// TestSentinelNamesTheMaster kills the master that a sentinel watches: the load follows to the replica.
func TestSentinelNamesTheMaster(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	t.Parallel()
	l := newLab(t)
	servers, err := l.StartReplicated(until(t), l.bin, 1, fleet.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range servers {
		stopAfter(t, i.Stop)
	}
	s, err := l.StartSentinel(until(t), l.bin, servers[0], 1)
	if err != nil {
		t.Fatal(err)
	}
	stopAfter(t, s.Stop)
	u := startLoad(t, engine.Options{
		Connections: 4, Pipeline: 2, Threads: 2,
		Schedule: []engine.Stretch{{Lasts: time.Hour, From: 3000, To: 3000}},
	},
		"sentinel://"+s.Addr+"/"+fleet.SentinelMaster, "set", 1000)
	await.Until(t, "calls to the master", func() bool {
		return u.seen(func(sum *engine.Tally) bool { return sum.Nodes[servers[0].Addr] > 0 })
	})
	if err := servers[0].Kill(until(t)); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "calls to its replica", func() bool {
		return u.seen(func(sum *engine.Tally) bool { return sum.Nodes[servers[1].Addr] > 0 })
	})
	sum := u.stop(t)
	t.Logf("calls %v, again %v, failed %d, errors %v", sum.Nodes, sum.Retried, sum.Failed, sum.Errors)
	if u.result.InFlight > 0 {
		t.Errorf("%d calls in flight", u.result.InFlight)
	}
}

func TestThroughProxies(t *testing.T) {
	needs.Real(t, needs.RedisServer, needs.Twemproxy, needs.HAProxy)
	t.Parallel()
	l := newLab(t)
	first, second := l.server(t, fleet.Spec{}), l.server(t, fleet.Spec{})
	for _, test := range []struct {
		name  string
		start func(context.Context, ...*fleet.Instance) (*fleet.Instance, error)
	}{
		{"twemproxy", l.StartTwemproxy},
		{"haproxy", l.StartHAProxy},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, err := test.start(until(t), first, second)
			if err != nil {
				t.Fatal(err)
			}
			stopAfter(t, p.Stop)
			for name, o := range map[string]engine.Options{
				"closed": {Connections: 20, Pipeline: 8, Threads: 2},
				"open": {Connections: 20, Pipeline: 1, Threads: 1, Schedule: []engine.Stretch{{
					Lasts: time.Minute,
					From:  20_000, To: 20_000,
				}}},
			} {
				t.Run(name, func(t *testing.T) {
					do(t, first, "CONFIG", "RESETSTAT")
					do(t, second, "CONFIG", "RESETSTAT")
					o.Requests = 20_000
					sum := startLoad(t, o, p.Addr, "set", 10_000).wait(t)
					if sum.Calls() != o.Requests || len(sum.Errors) > 0 {
						t.Errorf("%d calls, errors %v", sum.Calls(), sum.Errors)
					}
					if a, b := commandCalls(t, first, "set"), commandCalls(t, second, "set"); a == 0 || b == 0 ||
						a+b != o.Requests {
						t.Errorf("the servers executed %d and %d calls", a, b)
					}
				})
			}
		})
	}
}
