package engine

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/servers"
	"slowpath/internal/load/workload"
	"slowpath/internal/wire/target"
)

// watched runs a load and gives its sums while it runs.
type watched struct {
	mu    sync.Mutex
	total *Tally
	left  map[int]int64 // by worker, the calls in flight at the end of its last second
	bad   []string
}

func newWatched(o *Options) *watched {
	w := &watched{total: o.NewTally(), left: map[int]int64{}}
	o.OnTally = w.take
	return w
}

func (w *watched) take(t *Tally) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.total.Add(t)
	// Each second adds up by itself, so that a gap stays in its second.
	if before := w.left[t.Worker]; before+t.Begun != t.Calls()+t.Failed+t.InFlight {
		w.bad = append(w.bad, fmt.Sprintf("second %d of worker %d: %d were in flight, %d began, %d had a reply, %d "+
			"failed, %d are in flight",
			t.Second, t.Worker, before, t.Begun, t.Calls(), t.Failed, t.InFlight))
	}
	w.left[t.Worker] = t.InFlight
}

func (w *watched) read(f func(*Tally) int64) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return f(w.total)
}

// TestKilledServer: whatever is on the way when the server dies, each call that began is accounted for, and the load
// goes on when it is back.
func TestKilledServer(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	for name, tt := range map[string]struct {
		secure bool
		change func(*Options)
	}{
		"closed":  {false, func(o *Options) { o.Pipeline = 16 }},
		"batches": {false, func(o *Options) { o.Pipeline, o.Batch = 8, true }},
		"tls":     {true, func(o *Options) { o.Pipeline = 4 }},
		"open": {false, func(o *Options) {
			o.Schedule = []Stretch{{
				Lasts: time.Hour, From: 3000,
				To: 3000,
			}}
		}},
		"open, per call": {false, func(o *Options) {
			o.Schedule = []Stretch{{
				Lasts: time.Hour, From: 300,
				To: 300,
			}}
			o.PerCall = true
		}},
		"per call, tls": {true, func(o *Options) { o.PerCall, o.Pipeline = true, 1 }},
		"reconnect":     {false, func(o *Options) { o.ReconnectEvery = 7 }},
		"timeout":       {false, func(o *Options) { o.Timeout = time.Second }},
		"pool":          {false, func(o *Options) { o.Pool, o.Workers = 3, 10 }},
		"replay": {false, func(o *Options) {
			o.Workload, o.Replay, o.ReplaySpeed = nil, replayOf(t, logged(100_000, 9, 2*time.Millisecond),
				workload.ReplayOptions{}), 1
		}},
		"pool, tls open": {true, func(o *Options) {
			o.Pool, o.Workers = 3, 10
			o.Schedule = []Stretch{{Lasts: time.Hour, From: 500, To: 500}}
		}},
	} {
		if !slices.Contains([]string{"closed", "per call, tls", "pool", "replay"}, name) && !needs.InLong() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := start(t, servers.Redis7015, fleet.Spec{TLS: tt.secure})
			o := options(t, to(i))
			o.Requests, o.Connections = 0, 6
			tt.change(&o)
			if o.PerCall || o.Pool > 0 {
				o.Pipeline = 1
			}
			l := begin(t, o)
			l.goesOn()
			await.Pass(rand.N(100 * time.Millisecond)) // the kill comes at a random time
			if err := i.Kill(t.Context()); err != nil {
				t.Fatal(err)
			}
			refused := func(t *Tally) int64 { return t.ConnErrors[kindRefused] + t.Errors[kindRefused] }
			l.until("refusals", refused, l.read(refused))
			if err := i.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			l.goesOn()
			l.end()
			between := o.PerCall || o.ReconnectEvery > 0 // all connections may be between two when the server dies
			if l.total.Lost == 0 && !between || l.total.Reconnected == 0 && !o.PerCall {
				t.Errorf("%d connections lost, %d came back", l.total.Lost, l.total.Reconnected)
			}
			if o.Timeout == 0 && l.result.InFlight != 0 {
				t.Errorf("%d calls in flight at the end", l.result.InFlight)
			}
			for _, bad := range l.bad {
				t.Error(bad)
			}
		})
	}
}

// TestFrozenServer: a server that takes connections and calls and answers none; with a timeout calls fail, and it goes
// on when the server does.
func TestFrozenServer(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	for name, change := range map[string]func(*Options){
		"kept":     func(o *Options) { o.Pipeline = 4 },
		"per call": func(o *Options) { o.PerCall, o.Pipeline = true, 1 },
		"pool":     func(o *Options) { o.Pool, o.Workers, o.Pipeline = 2, 6, 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := start(t, servers.Redis7015, fleet.Spec{})
			o := options(t, to(i))
			// a load whose first connections are late does not begin, and the machine may be busy
			o.Requests, o.Timeout, o.DialTimeout = 0, 200*time.Millisecond, time.Second
			change(&o)
			l := begin(t, o)
			l.until("calls", (*Tally).Calls, 0)
			if err := syscall.Kill(i.PID, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = syscall.Kill(i.PID, syscall.SIGCONT) }()
			l.until("timeouts of calls and logins", func(t *Tally) int64 {
				return min(t.TimedOut+t.Errors[kindNoLogin], t.ConnErrors[kindNoLogin]+t.Errors[kindNoLogin])
			}, 0)
			if err := syscall.Kill(i.PID, syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			l.goesOn()
			l.end()
			// each call that failed is counted once
			if l.total.TimedOut != l.total.Errors[kindTimeout] || l.total.ConnErrors[kindTimeout] != 0 {
				t.Errorf("%d timed out, %v, and of connections %v", l.total.TimedOut, l.total.Errors,
					l.total.ConnErrors)
			}
			var failed int64
			for _, n := range l.total.Errors {
				failed += n
			}
			if failed != l.total.Failed {
				t.Errorf("%d calls failed, %v", l.total.Failed, l.total.Errors)
			}
			if o.PerCall && len(l.total.ConnErrors) != 0 { // each attempt to connect was for a call, which counts it
				t.Errorf("of connections %v, of calls %v", l.total.ConnErrors, l.total.Errors)
			}
		})
	}
}

// TestRefusals: error replies to the login.
func TestRefusals(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	i := start(t, servers.Redis7015, fleet.Spec{Config: []string{"maxclients 20"}})
	o := options(t, to(i))
	o.Connections, o.Pipeline = 40, 1
	if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "maxclients") {
		t.Errorf("%v, want what to do about maxclients", err)
	}
	await.Until(t, "all connections are closed", func() bool {
		info, err := i.Do(t.Context(), "INFO", "clients")
		return err == nil && strings.Contains(info.(string), "connected_clients:1\r")
	})
	o.ColdStart, o.Requests, o.Duration = true, 0, 500*time.Millisecond
	total, r := sum(t, t.Context(), o)
	if total.ConnErrors[kindMaxClients] == 0 || total.Calls() == 0 || total.Dials.Failed == 0 || r.InFlight != 0 {
		t.Errorf("%v, %d calls", total.ConnErrors, total.Calls())
	}
	o = options(t, target.Target{Network: "tcp", Host: "127.0.0.1", Port: 1})
	for _, cold := range []bool{false, true} {
		o.ColdStart = cold
		if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%v, want a refusal", err)
		}
	}
}

// TestLoading: calls to a server that loads its data have error replies, and the load sees the end of it.
func TestLoading(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	t.Parallel()
	i := start(t, servers.Redis7015, fleet.Spec{AOF: true, Config: []string{
		"appendfsync no",
		"loading-process-events-interval-bytes 1024", "key-load-delay 100",
	}})
	fill := options(t, to(i))
	fill.Workload, fill.Requests = simple(t, "set", 200), 20_000
	sum(t, t.Context(), fill)
	if err := i.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := i.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := options(t, to(i))
	o.Requests, o.Pipeline = 0, 1
	l := begin(t, o)
	l.until("the end of loading", func(t *Tally) int64 { return t.Calls() - t.Errors["LOADING"] }, 0)
	l.end()
	if l.total.Errors["LOADING"] == 0 || l.total.Ops[0].Errors != l.total.Errors["LOADING"] ||
		len(l.total.ConnErrors) != 0 {
		t.Errorf("%v, %v", l.total.Errors, l.total.ConnErrors)
	}
}

// TestReplyAndClose: a peer that answers and closes in one segment. Its end is seen with the reply, not by the next
// call, which would fail.
func TestReplyAndClose(t *testing.T) {
	needs.Real(t)
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go lastWords(c)
		}
	}()
	o := options(t, target.Target{Network: "tcp", Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port})
	o.Requests, o.Pipeline, o.Connections, o.Threads = 0, 1, 1, 1
	o.Schedule = []Stretch{{Lasts: time.Hour, From: 0.2, To: 0.2}} // a call every 5 s
	run := begin(t, o)
	run.until("the end of its connection", func(t *Tally) int64 { return t.Lost }, 0)
	run.end()
	if run.total.Calls() != run.total.Begun || run.total.ConnErrors[kindClosed] == 0 {
		t.Errorf("%d calls, %v, %v", run.total.Calls(), run.total.Errors, run.total.ConnErrors)
	}
}

const tcpCork = 3 // linux/tcp.h

// lastWords lets in, answers one call and closes, the end in the same segment as the reply where the kernel makes it
// so.
func lastWords(c net.Conn) {
	defer c.Close()
	buf := make([]byte, 4096)
	for n := 0; n < 2; n++ {
		if _, err := c.Read(buf); err != nil {
			return
		}
		if raw, err := c.(*net.TCPConn).SyscallConn(); err == nil && n == 1 {
			_ = raw.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpCork, 1) })
		}
		fmt.Fprint(c, "+OK\r\n")
	}
}
