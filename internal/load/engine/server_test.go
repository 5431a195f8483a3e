package engine

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/load/workload"
	"slowpath/internal/wire/target"
)

// start runs a real server for the time of the test.
func start(t *testing.T, name servers.Name, spec fleet.Spec) *fleet.Instance {
	t.Helper()
	return fleettest.Start(t, name, spec)
}

// to is the target of a server.
func to(i *fleet.Instance) target.Target {
	t := target.Target{Network: "tcp", Host: "127.0.0.1", Port: i.Port}
	if i.TLS {
		t.TLS = &target.TLSOptions{CACert: i.CACert}
	}
	return t
}

// simple is a workload of one command with a thousand keys.
func simple(t *testing.T, command string, valueBytes int) *workload.Workload {
	t.Helper()
	return compiled(t, command, 999, valueBytes)
}

func compiled(t *testing.T, command string, lastKey uint64, valueBytes int) *workload.Workload {
	t.Helper()
	w, err := workload.Compile(workload.Options{
		Commands: []string{command}, Keys: workload.Keys{High: lastKey},
		Sizes: workload.FixedSize(valueBytes),
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// options are those of a small closed loop; the test changes what it is about.
func options(t *testing.T, to target.Target) Options {
	t.Helper()
	return Options{
		Target: to, Clock: clock.New(), Workload: simple(t, "get", 3), Connections: 4, Pipeline: 2,
		Threads: 2, Requests: 2000,
		Arrivals: Uniform, Drain: 10 * time.Second,
	}
}

// sum runs a load and adds up what it counted.
func sum(t *testing.T, ctx context.Context, o Options) (*Tally, Result) {
	t.Helper()
	total := o.NewTally()
	o.OnTally = total.Add
	r, err := Run(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	balanced(t, total, r)
	return total, r
}

// balanced: each call that began has a reply, has failed, or is in flight.
func balanced(t *testing.T, total *Tally, r Result) {
	t.Helper()
	if total.Begun != total.Calls()+total.Failed+r.InFlight {
		t.Errorf("%d calls began; %d had a reply, %d failed, %d are in flight", total.Begun, total.Calls(),
			total.Failed, r.InFlight)
	}
	var errorReplies, kinds int64
	for i := range total.Ops {
		o := &total.Ops[i]
		errorReplies += o.Errors
		if o.Calls != o.Service.TotalCount() || o.Response != nil && o.Calls != o.Response.TotalCount() {
			t.Errorf("%d calls, %d times", o.Calls, o.Service.TotalCount())
		}
	}
	for _, n := range total.Errors {
		kinds += n
	}
	if kinds != errorReplies+total.Failed {
		t.Errorf("%v, and %d error replies and %d that failed", total.Errors, errorReplies, total.Failed)
	}
}

// clean is a load in which nothing went wrong.
func clean(t *testing.T, total *Tally, r Result, calls int64) {
	t.Helper()
	if total.Calls() != calls || total.Failed != 0 || len(total.Errors) != 0 || len(total.ConnErrors) != 0 ||
		r.InFlight != 0 {
		t.Errorf("%d calls, failed %d, %v, %v, in flight %d; want %d calls and no errors", total.Calls(), total.Failed,
			total.Errors,
			total.ConnErrors, r.InFlight, calls)
	}
}

// served is how often the server says that it served a command.
func served(t *testing.T, i *fleet.Instance, command string) int64 {
	t.Helper()
	v, err := i.Do(t.Context(), "INFO", "commandstats")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(v.(string), "cmdstat_"+command+":calls=")
	n, _ := strconv.ParseInt(rest[:max(0, strings.IndexByte(rest, ','))], 10, 64)
	return n
}

// oneKey is a workload of a single key, which is there after the first SET.
func oneKey(t *testing.T, command string, valueBytes int) *workload.Workload {
	t.Helper()
	return compiled(t, command, 0, valueBytes)
}

// await polls until something holds.
func await(t *testing.T, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Error("it did not come about within 30 s")
			return
		}
	}
}
