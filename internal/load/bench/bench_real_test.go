//go:build linux

package bench

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/load/bottleneck"
	"slowpath/internal/load/engine"
	"slowpath/internal/load/workload"
	"slowpath/internal/wire/target"
)

func redis(t *testing.T) *fleet.Instance {
	t.Helper()
	return fleettest.Start(t, servers.Redis7015, fleet.Spec{})
}

// options of a small load of GET.
func options(t *testing.T, i *fleet.Instance) Options {
	t.Helper()
	at, err := target.Parse(i.Addr)
	if err != nil {
		t.Fatal(err)
	}
	w, err := workload.Compile(workload.Options{Keys: workload.Keys{High: 999}})
	if err != nil {
		t.Fatal(err)
	}
	return Options{Load: engine.Options{Target: at, Workload: w, Connections: 4, Pipeline: 3, Threads: 2, Seed: 1}}
}

// TestClosedLoop: every call counts once in each number of calls.
func TestClosedLoop(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	o := options(t, redis(t))
	const calls = 20_001
	o.Load.Requests = calls
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var series int64
	for _, s := range r.Series {
		series += s.Requests
	}
	h, err := r.Latency.Histogram()
	if err != nil {
		t.Fatal(err)
	}
	if r.Requests != calls || series != calls || r.Latency.Calls != calls || h.TotalCount() != calls ||
		r.Ops[0].Requests != calls || r.Misses != calls {
		t.Errorf("%d requests, %d in the series, %d latencies, %d in the histogram, %d of GET, %d misses", r.Requests,
			series, r.Latency.Calls, h.TotalCount(), r.Ops[0].Requests, r.Misses)
	}
	if r.Latency != r.Service || r.Latency.P50Ns <= 0 || r.Latency.P99Ns < r.Latency.P50Ns ||
		r.Latency.MaxNs < r.Latency.P99Ns {
		t.Errorf("latency %+v, service %+v", r.Latency, r.Service)
	}
	if r.RequestsPerSecond <= 0 || r.Generator.CPUNs <= 0 || r.Generator.WorkersCPUNs <= 0 ||
		r.Generator.SystemCallsPerRequest <= 0 || r.Schedule != nil || r.Interrupted || len(r.Errors) > 0 {
		t.Errorf("%+v", r)
	}
	if len(r.Servers) != 1 || r.Servers[0].Address != o.Load.Target.Addr() || r.Servers[0].Proxy ||
		r.Servers[0].CPUFrom != string(bottleneck.VisibleOnHost) || r.Servers[0].CPUNs <= 0 {
		t.Errorf("servers: %+v", r.Servers)
	}
	notes := strings.Join(r.Notes, "\n")
	if !strings.Contains(notes, "Closed loop") || !strings.Contains(notes, "--prefill") {
		t.Errorf("notes: %s", notes)
	}
}

// TestOpenLoopOfAFrozenServer: calls that never came back, and those that could not even be sent, are counted with
// their age.
func TestOpenLoopOfAFrozenServer(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	i := redis(t)
	o := options(t, i)
	const perSecond = 500
	o.Load.Duration, o.Load.Drain, o.Load.Arrivals = 2*time.Second, 10*time.Millisecond, engine.Uniform
	o.Load.Schedule = []engine.Stretch{{Lasts: o.Load.Duration, From: perSecond, To: perSecond}}
	frozen := false
	o.OnSecond = func(s Second, _ *engine.Tally) {
		if !frozen {
			frozen = true
			if err := syscall.Kill(i.PID, syscall.SIGSTOP); err != nil {
				t.Error(err)
			}
		}
	}
	defer syscall.Kill(i.PID, syscall.SIGCONT)
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.Requests + r.Unanswered.InFlight + r.Unanswered.Unsent; got < 2*perSecond-2 || got > 2*perSecond+2 ||
		r.Unanswered.InFlight != 12 || r.Unanswered.Unsent == 0 {
		t.Errorf("%d calls of a schedule of %d: %+v", got, 2*perSecond, r.Unanswered)
	}
	if r.Latency.Calls != r.Requests+r.Unanswered.InFlight+r.Unanswered.Unsent ||
		r.Service.Calls != r.Requests+r.Unanswered.InFlight {
		t.Errorf("%d latencies, %d from the send: %d requests, %+v", r.Latency.Calls, r.Service.Calls, r.Requests,
			r.Unanswered)
	}
	// The calls that were due in the second half waited for up to a second, evenly; a server that did not stop at once
	// makes it a little less.
	if r.Latency.MaxNs < int64(500*time.Millisecond) || r.Latency.P90Ns < int64(100*time.Millisecond) {
		t.Errorf("max %v, p90 %v", time.Duration(r.Latency.MaxNs), time.Duration(r.Latency.P90Ns))
	}
	if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, "never sent") || !strings.Contains(notes,
		"12 calls were without a reply") || r.Schedule.Kept {
		t.Errorf("notes: %s, schedule %+v", notes, r.Schedule)
	}
}

// TestInterrupted: a load that its context ends has a result.
func TestInterrupted(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	o := options(t, redis(t))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o.OnSecond = func(Second, *engine.Tally) { cancel() }
	r, err := Run(ctx, o)
	if err != nil || !r.Interrupted || r.Requests == 0 || r.Seconds < 1 {
		t.Errorf("%v, %+v", err, r)
	}
}

// TestNoServer: the first connections must succeed.
func TestNoServer(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	i := redis(t)
	o := options(t, i)
	if err := i.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r, err := Run(t.Context(), o); err == nil {
		t.Errorf("a result without a server: %+v", r)
	}
}
