package engine

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/servers"
	"slowpath/internal/load/workload"
)

// replaying is the options of a replay; the test changes what it is about.
func replaying(t *testing.T, i *fleet.Instance, log string) Options {
	t.Helper()
	o := options(t, to(i))
	o.Workload, o.Requests, o.Replay, o.ReplaySpeed = nil, 0, replayOf(t, log, workload.ReplayOptions{}), 1
	return o
}

// inOrder: the lists that logged made hold all numbers of their clients that are below a bound, in their order.
func inOrder(t *testing.T, do func(args ...string) any, prefix string, requests, clients int) {
	t.Helper()
	for c := range clients {
		var want []string
		for i := c; i < requests; i += clients {
			want = append(want, fmt.Sprint(i))
		}
		got, _ := do("LRANGE", fmt.Sprintf("%slist:%d", prefix, c), "0", "-1").([]any)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("client %d: %.200v, want %.200v", c, got, want)
			return
		}
	}
}

// TestReplayKeepsOrder: whatever the connections, each client's requests arrive once, in the order of the log.
func TestReplayKeepsOrder(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	const requests, clients = 3000, 7
	log := logged(requests, clients, 50*time.Microsecond)
	for name, tt := range map[string]struct {
		secure bool
		calls  int
		change func(*Options)
	}{
		"own pace":      {false, requests, func(o *Options) { o.Connections = clients }},
		"fewer":         {false, requests, func(o *Options) { o.Connections, o.Pipeline = 2, 1 }},
		"more":          {false, requests, func(o *Options) { o.Connections, o.Threads = 20, 3 }},
		"one":           {false, requests, func(o *Options) { o.Connections, o.Pipeline, o.ReplaySpeed = 1, 1, 10 }},
		"pipeline":      {false, requests, func(o *Options) { o.Pipeline, o.ReplaySpeed = 16, 10 }},
		"one, pipeline": {false, requests, func(o *Options) { o.Connections, o.Pipeline, o.ReplaySpeed = 1, 16, 1 }},
		"two, pipeline": {false, requests, func(o *Options) { o.Connections, o.Pipeline, o.Threads = 2, 16, 1 }},
		"no pace":       {false, requests, func(o *Options) { o.Pipeline, o.ReplaySpeed = 1, 0 }},
		"no pace, spin": {false, requests, func(o *Options) {
			o.Pipeline, o.ReplaySpeed, o.Threads, o.BusyPoll = 16,
				0, 1, true
		}},
		"the first":       {false, 1001, func(o *Options) { o.Requests, o.ReplaySpeed = 1001, 0 }},
		"more than there": {false, requests, func(o *Options) { o.Requests, o.ReplaySpeed = 1e6, 0 }},
		"tls":             {true, requests, func(o *Options) { o.ReplaySpeed = 10 }},
		"tls, no pace":    {true, requests, func(o *Options) { o.Pipeline, o.ReplaySpeed = 16, 0 }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := start(t, servers.Redis7015, fleet.Spec{TLS: tt.secure})
			o := replaying(t, i, log)
			tt.change(&o)
			total, r := sum(t, t.Context(), o)
			clean(t, total, r, int64(tt.calls))
			if r.Unsent != 0 || o.Paced() != (total.Ops[0].Response != nil) {
				t.Errorf("%d unsent, %+v", r.Unsent, total.Ops[0])
			}
			inOrder(t, func(args ...string) any {
				v, err := i.Do(t.Context(), args...)
				if err != nil {
					t.Fatal(err)
				}
				return v
			}, workload.Prefix, tt.calls, clients)
		})
	}
}

// TestReplayIsDueWhenLogged: requests that are later in the log than the end of the load are not sent, and do not count
// as unsent.
func TestReplayIsDueWhenLogged(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	i := start(t, servers.Redis7015, fleet.Spec{})
	const now, later = 40, 30 // requests
	// three years later
	log := logged(now, 4, time.Microsecond) + strings.ReplaceAll(logged(later, 4, time.Microsecond), "17000", "18000")
	for name, tt := range map[string]struct {
		speed float64
		calls int64
	}{"own pace": {1, now}, "faster": {100, now}, "no pace": {0, now + later}} {
		t.Run(name, func(t *testing.T) {
			o := replaying(t, i, log)
			o.ReplaySpeed, o.Duration = tt.speed, 300*time.Millisecond
			total, r := sum(t, t.Context(), o)
			clean(t, total, r, tt.calls-r.Unsent) // those that were due, where another process had the CPU
		})
	}
	t.Run("Ctrl-C", func(t *testing.T) {
		o := replaying(t, i, log)
		l := begin(t, o)
		l.until("all requests of the begin", (*Tally).Calls, now-1)
		l.end()
		clean(t, l.total, l.result, now)
	})
}

// TestReplayCountsWhatItCouldNotSend: a server that does not answer leaves what was due unsent, with its age.
func TestReplayCountsWhatItCouldNotSend(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	i := start(t, servers.Redis7015, fleet.Spec{})
	const requests = 50
	o := replaying(t, i, logged(requests, 5, time.Microsecond))
	o.Connections, o.Pipeline, o.Threads, o.Duration, o.Drain = 2, 3, 2, 200*time.Millisecond, time.Millisecond
	defer func() { _ = syscall.Kill(i.PID, syscall.SIGCONT) }()
	o.Begin = func(context.Context) error { return syscall.Kill(i.PID, syscall.SIGSTOP) }
	total, r := sum(t, t.Context(), o)
	if total.Calls() != 0 || r.InFlight != 2*3 || r.Unsent != requests-2*3 || total.AgeFromIntended == nil ||
		total.AgeFromIntended.TotalCount() != requests {
		t.Errorf("%d calls, %d in flight, %d unsent, ages %v", total.Calls(), r.InFlight, r.Unsent,
			total.AgeFromIntended)
	}
}

// captured is what MONITOR shows of a server while something is done, as lines of redis-cli.
func captured(t *testing.T, i *fleet.Instance, what func()) string {
	t.Helper()
	conn, err := net.Dial("tcp", i.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	var all []byte
	read := func(until string) {
		for buf := make([]byte, 64<<10); !bytes.Contains(all, []byte(until)); {
			n, err := conn.Read(buf)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, buf[:n]...)
		}
	}
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil {
		t.Fatal(err)
	}
	read("OK\r\n")
	what()
	if _, err := i.Do(t.Context(), "ECHO", "the end"); err != nil {
		t.Fatal(err)
	}
	read("the end")
	return strings.ReplaceAll("\n"+string(all), "\n+", "\n")
}

// TestReplayOfALoad: what MONITOR shows of a load is sent again call by call, blocks too.
func TestReplayOfALoad(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	i := start(t, servers.Redis7015, fleet.Spec{})
	const calls = 2000
	log := captured(t, i, func() {
		o := options(t, to(i))
		o.Requests, o.Connections = calls, 6
		var err error
		if o.Workload, err = workload.Compile(workload.Options{
			Commands: []string{
				"get", "set",
				"MULTI; INCR n:{key}; SET x:{key} {value}; EXEC",
			}, Keys: workload.Keys{High: 99},
			Sizes: workload.FixedSize(1000),
		}); err != nil {
			t.Fatal(err)
		}
		total, r := sum(t, t.Context(), o)
		clean(t, total, r, calls)
	})
	sets, incrs := served(t, i, "set"), served(t, i, "incr")
	o := replaying(t, i, log)
	if n := o.Replay.Clients(); n != 6 && n != 7 { // and that which wrote the end
		t.Errorf("%d clients", n)
	}
	total, r := sum(t, t.Context(), o)
	var load int64
	for op, name := range o.Ops() {
		if n := total.Ops[op].Calls; name.Name == "GET" || name.Name == "SET" || name.Name == "MULTI" {
			load += n
		}
	}
	if load != calls || len(total.Errors) != 0 || r.InFlight != 0 || served(t, i, "set") != 2*sets || served(t, i,
		"incr") != 2*incrs {
		t.Errorf("%d calls of %d, errors %v; SET %d twice is %d, INCR %d twice is %d", load, calls, total.Errors, sets,
			served(t, i, "set"), incrs, served(t, i, "incr"))
	}
}
