package engine

import (
	"fmt"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/servers"
)

// TestConnectionsByPlan: no call is lost or sent twice, whatever happens to connections, and the server counts as many.
func TestConnectionsByPlan(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	type change func(*Options)
	open := func(o *Options) {
		o.Duration = 200 * time.Millisecond
		o.Requests = 0
		o.Schedule = []Stretch{{Lasts: o.Duration, From: 2500, To: 2500}}
	}
	for name, tt := range map[string]struct {
		change  change
		retired func(calls, connections int64) (low, high int64)
	}{
		"per call": {func(o *Options) { o.PerCall = true }, func(calls, _ int64) (int64,
			int64,
		) {
			return calls, calls
		}},
		"per call, open": {func(o *Options) { open(o); o.PerCall = true }, func(calls, _ int64) (int64,
			int64,
		) {
			return calls, calls
		}},
		"reconnect every": {func(o *Options) { o.ReconnectEvery = 10 }, func(calls, n int64) (int64,
			int64,
		) {
			return calls/15 - n, calls / 5
		}},
		"reconnect every one": {func(o *Options) { o.ReconnectEvery = 1 }, func(calls, n int64) (int64,
			int64,
		) {
			return calls, calls
		}},
		"reconnect every open": {func(o *Options) { open(o); o.ReconnectEvery = 10 }, func(calls, n int64) (int64,
			int64,
		) {
			return calls/15 - n, calls / 5
		}},
		"reconnect, batches": {func(o *Options) { o.ReconnectEvery, o.Batch = 10, true }, func(calls, n int64) (int64,
			int64,
		) {
			return calls/15 - n, calls / 5
		}},
		"cold start": {func(o *Options) { o.ColdStart = true }, func(int64, int64) (int64, int64) {
			return 0,
				0
		}},
		"cold start, open": {func(o *Options) { open(o); o.ColdStart = true }, func(int64, int64) (int64,
			int64,
		) {
			return 0, 0
		}},
	} {
		for _, secure := range []bool{false, true} {
			t.Run(fmt.Sprint(name, secure), func(t *testing.T) {
				i := start(t, servers.Redis7015, fleet.Spec{TLS: secure})
				o := options(t, to(i))
				o.Requests, o.Pipeline = 300, 1
				if o.Pipeline = 3; name[:3] == "per" {
					o.Pipeline = 1
				}
				tt.change(&o)
				total, r := sum(t, t.Context(), o)
				calls := total.Calls()
				clean(t, total, r, calls)
				if n := served(t, i, "get"); n != calls {
					t.Errorf("the server saw %d calls of %d", n, calls)
				}
				if o.Open() && calls+r.Unsent != 500 || !o.Open() && calls != o.Requests {
					t.Errorf("%d calls, %d unsent", calls, r.Unsent)
				}
				if low, high := tt.retired(calls, int64(o.Connections)); total.Retired < low || total.Retired > high {
					t.Errorf("%d connections were closed, want %d to %d", total.Retired, low, high)
				}
				if total.Reconnected > total.Retired || total.Lost != 0 {
					t.Errorf("%d came back of %d that were closed and %d that were lost", total.Reconnected,
						total.Retired, total.Lost)
				}
				if total.Dials.Done != total.Dials.Whole.TotalCount() || total.Dials.Done < total.Retired {
					t.Errorf("%d dials, %d timed, %d closed", total.Dials.Done, total.Dials.Whole.TotalCount(),
						total.Retired)
				}
			})
		}
	}
}

// TestFirstCallsPayTheDial: on a connection that is opened during the load a call's time has that of the
// dial.
func TestFirstCallsPayTheDial(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	i := start(t, servers.Redis7015, fleet.Spec{})
	for name, change := range map[string]func(*Options){
		"per call":   func(o *Options) { o.PerCall = true },
		"cold start": func(o *Options) { o.ColdStart, o.Requests = true, 8 },
		"reconnect":  func(o *Options) { o.ReconnectEvery, o.Requests = 1, 40 },
	} {
		o := options(t, to(i))
		o.Requests, o.Pipeline, o.Threads = 40, 1, 1
		change(&o)
		total, _ := sum(t, t.Context(), o)
		op := total.Ops[0]
		if quickest := total.Dials.Whole.Min(); op.Response.Max() < quickest+op.Service.Min() {
			t.Errorf("%s: the slowest call took %d ns, the quickest dial %d", name, op.Response.Max(), quickest)
		}
		if name == "per call" && op.Response.Min() < total.Dials.Whole.Min()*99/100 { // of two digits
			t.Errorf("a call took %d ns, less than any dial, %d", op.Response.Min(), total.Dials.Whole.Min())
		}
	}
}

// TestNameIsResolvedAtEachDial: a name whose address changes leads to the new one.
func TestNameIsResolvedAtEachDial(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	i := start(t, servers.Redis7015, fleet.Spec{})
	o := options(t, to(i))
	o.Target.Host, o.PerCall, o.Requests, o.Pipeline = "localhost", true, 20, 1
	total, r := sum(t, t.Context(), o)
	clean(t, total, r, o.Requests)
	if total.Dials.DNS == nil || total.Dials.DNS.TotalCount() != total.Dials.Done {
		t.Errorf("%+v: not every dial asked for the address", total.Dials)
	}
}

// TestStop: the end of the context gives the result so far.
func TestStop(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	i := start(t, servers.Redis7015, fleet.Spec{})
	for name, change := range map[string]func(*Options){
		"kept": func(o *Options) {}, "per call": func(o *Options) { o.PerCall, o.Pipeline = true, 1 },
		"cold":      func(o *Options) { o.ColdStart = true },
		"reconnect": func(o *Options) { o.ReconnectEvery = 5 },
	} {
		o := options(t, to(i))
		o.Requests = 0
		change(&o)
		before := served(t, i, "get")
		l := begin(t, o)
		await.Until(t, "calls", func() bool { return served(t, i, "get") > before+100 })
		l.end()
		if n := served(t, i, "get") - before; l.total.Calls() != n || l.result.InFlight != 0 {
			t.Errorf("%s: %d calls, %d in flight; the server saw %d", name, l.total.Calls(), l.result.InFlight, n)
		}
	}
}
