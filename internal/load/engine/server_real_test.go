package engine

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"slowpath/internal/house/await"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/load/workload"
)

// start runs a real server for the time of the test.
func start(t *testing.T, name servers.Name, spec fleet.Spec) *fleet.Instance {
	t.Helper()
	return fleettest.Start(t, name, spec)
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

// running is a load that runs until a test ends it.
type running struct {
	*watched
	t      *testing.T
	cancel context.CancelFunc
	ended  chan struct{}
	result Result
	err    error
}

func begin(t *testing.T, o Options) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &running{watched: newWatched(&o), t: t, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(l.ended)
		l.result, l.err = Run(ctx, o)
	}()
	t.Cleanup(func() { cancel(); <-l.ended })
	return l
}

// until waits until what the load counted is above a bound. A load that ends before is an error.
func (l *running) until(what string, count func(*Tally) int64, bound int64) {
	l.t.Helper()
	await.Until(l.t, what, func() bool {
		select {
		case <-l.ended:
			l.t.Fatalf("%s: the load has ended: %v", what, l.err)
		default:
		}
		return l.read(count) > bound
	})
}

// goesOn waits for some more calls.
func (l *running) goesOn() {
	l.t.Helper()
	l.until("calls go on", (*Tally).Calls, l.read((*Tally).Calls)+50)
}

// end ends the load, whose calls must all be accounted for.
func (l *running) end() {
	l.t.Helper()
	l.cancel()
	<-l.ended
	if l.err != nil {
		l.t.Fatal(l.err)
	}
	balanced(l.t, l.total, l.result)
}
