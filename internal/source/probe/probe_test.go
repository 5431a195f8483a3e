package probe

import (
	"context"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"slowpath/internal/clock"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/recording"
	"slowpath/internal/wire/target"
)

// locked makes an in-memory recording safe for the probe's goroutines.
type locked struct {
	mu  sync.Mutex
	rec *recording.Recording
}

func (l *locked) Call(c recording.Call, s ...recording.Segment) { l.do(func() { l.rec.Call(c, s...) }) }

func (l *locked) Histogram(h recording.Histogram) { l.do(func() { l.rec.Histogram(h) }) }
func (l *locked) Sample(s recording.Sample)       { l.do(func() { l.rec.Sample(s) }) }
func (l *locked) ConnUse(client string, u recording.ConnUse) {
	l.do(func() { l.rec.ConnUse(client, u) })
}
func (l *locked) Event(e recording.Event)       { l.do(func() { l.rec.Event(e) }) }
func (l *locked) Snapshot(s recording.Snapshot) { l.do(func() { l.rec.Snapshot(s) }) }

func (l *locked) SetMeta(k, v string) { l.do(func() { l.rec.SetMeta(k, v) }) }

func (l *locked) do(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// redis starts a real server that allows DEBUG SLEEP.
func redis(t *testing.T) *fleet.Instance {
	t.Helper()
	return fleettest.Start(t, servers.Redis7015, fleet.Spec{Config: []string{"enable-debug-command yes"}})
}

// probing is a probe that runs.
type probing struct {
	t     *testing.T
	clock *clock.Real
	sink  *locked
}

// run probes until during returns, and gives what was recorded.
func run(t *testing.T, o Options, during func(p *probing)) *recording.Recording {
	t.Helper()
	tg, err := target.Parse(o.Node)
	if err != nil {
		t.Fatal(err)
	}
	p := &probing{t: t, clock: clock.New(), sink: &locked{rec: recording.New()}}
	o.Target, o.Clock, o.Sink = tg, p.clock, p.sink
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- Watch(ctx, o) }()
	during(p)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	p.sink.rec.Index()
	return p.sink.rec
}

// until waits until what was recorded is so.
func (p *probing) until(what string, is func(*recording.Recording) bool) {
	p.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		ok := false
		p.sink.do(func() { ok = is(p.sink.rec) })
		if ok {
			return
		}
	}
	p.t.Fatal("waited too long for ", what)
}

// answered waits until n calls that were due from a time on have come back without an error.
func (p *probing) answered(n int, dueFrom int64) {
	p.t.Helper()
	p.until("calls that come back", func(r *recording.Recording) bool {
		got := 0
		for _, c := range r.Calls {
			if c.Error == "" && c.IntendedNs >= dueFrom {
				got++
			}
		}
		return got >= n
	})
}

// A stall of half a second at 100 calls per second is about fifty slow calls, each from when it was due, and not one.
func TestStallIsNotOmitted(t *testing.T) {
	const width, stall = int64(10 * time.Millisecond), int64(500 * time.Millisecond)
	i := redis(t)
	var asked, back int64
	rec := run(t, Options{Node: i.Addr, Rate: 100}, func(p *probing) {
		p.answered(5, 0) // the connection is open
		asked = p.clock.Now()
		if _, err := i.Do(t.Context(), "DEBUG", "SLEEP", "0.5"); err != nil {
			t.Fatal(err)
		}
		back = p.clock.Now()
		p.answered(5, back)
	})
	// The server began to sleep after asked and was awake before back: between these two it slept, however late this
	// process was.
	from, to := back-stall, asked+stall
	held := int64(0)
	for k, c := range rec.Calls {
		if k > 0 {
			if gap := c.IntendedNs - rec.Calls[k-1].IntendedNs; gap > 2*width {
				t.Fatalf("nothing was due for %v: a slot was left out", time.Duration(gap))
			}
		}
		if c.IntendedNs < from || c.IntendedNs >= to {
			continue
		}
		held++
		if c.EndNs < to {
			t.Errorf("a call was due while the server slept, and took only %v: %+v",
				time.Duration(c.EndNs-c.IntendedNs), c)
		}
	}
	if want := max(0, (to-from)/width); held < want-1 || held > want+2 {
		t.Errorf("%d calls waited in %v of sleep, want about %d", held, time.Duration(to-from), want)
	}
}

// Calls that are still waiting when the watch ends are recorded: those of a server that is stopped for good, too.
func TestUnfinishedCalls(t *testing.T) {
	const rate, freshRate = 100, 10
	i := redis(t)
	var stopped, end int64
	rec := run(t, Options{Node: i.Addr, Rate: rate, FreshRate: freshRate}, func(p *probing) {
		p.answered(5, 0)
		if err := syscall.Kill(i.PID, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Kill(i.PID, syscall.SIGCONT) })
		stopped = p.clock.Now()
		time.Sleep(400 * time.Millisecond) // calls are due meanwhile
		end = p.clock.Now()
	})
	kept, fresh := int64(0), int64(0)
	for _, c := range rec.Calls {
		if c.IntendedNs < stopped || c.IntendedNs >= end {
			continue
		}
		if c.Error != Unfinished {
			t.Errorf("a stopped server has answered: %+v", c)
		}
		if c.Conn == Kept {
			kept++
		} else {
			fresh++
		}
	}
	if want := (end - stopped) * rate / int64(time.Second); kept < want-1 {
		t.Errorf("%d kept calls unfinished, %d were due", kept, want)
	}
	if want := min((end-stopped)*freshRate/int64(time.Second), maxFresh); fresh < want-2 {
		t.Errorf("%d fresh calls unfinished, %d were due", fresh, want)
	}
}

func TestPhasesOfFreshConnections(t *testing.T) {
	i := redis(t)
	rec := run(t, Options{Node: i.Addr, FreshRate: 50}, func(p *probing) { p.answered(5, 0) })
	for _, c := range rec.Calls {
		if c.Error == Unfinished {
			continue
		}
		if c.Error != "" || c.Conn != Fresh {
			t.Fatalf("%+v", c)
		}
		connect, at := false, c.IntendedNs
		for _, s := range rec.SegmentsOf(c.ID) {
			if s.FromNs < at || s.ToNs < s.FromNs || s.ToNs > c.EndNs {
				t.Errorf("segment %+v of %+v", s, c)
			}
			at = s.ToNs
			connect = connect || s.Culprit == "connect"
		}
		if !connect {
			t.Errorf("no connect in %+v", rec.SegmentsOf(c.ID))
		}
	}
	if len(rec.Histograms) == 0 {
		t.Error("no histograms")
	}
}

// The server goes away and comes back: the probe goes on, and says what happened.
func TestServerRestarts(t *testing.T) {
	i := redis(t)
	run(t, Options{Node: i.Addr, Rate: 50}, func(p *probing) {
		p.answered(5, 0)
		if err := i.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.until("an error", func(r *recording.Recording) bool {
			return slices.ContainsFunc(r.Events, func(e recording.Event) bool {
				return e.Kind == recording.KindError && e.Source == recording.SourceProbe && e.Subject == i.Addr
			})
		})
		if err := i.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.answered(5, p.clock.Now())
	})
}

// A user that may not GET costs the server's users nothing: the probe sends PING, and says what it could not do. A user
// that could and now cannot is refused, and that is recorded.
func TestUserThatMayNotRead(t *testing.T) {
	i := redis(t)
	may := func(rule string) {
		t.Helper()
		if _, err := i.Do(t.Context(), "ACL", "SETUSER", "default", rule); err != nil {
			t.Fatal(err)
		}
	}
	isSpot := func(e recording.Event) bool { return e.Kind == recording.KindBlindSpot }
	errorsOf := func(rec *recording.Recording) (codes []string) {
		for _, c := range rec.Calls {
			if c.Error != "" && c.Error != Unfinished {
				codes = append(codes, c.Error)
			}
		}
		return slices.Compact(codes)
	}
	may("-get")
	rec := run(t, Options{Node: i.Addr, Rate: 50}, func(p *probing) {
		p.until("a blind spot", func(r *recording.Recording) bool { return slices.ContainsFunc(r.Events, isSpot) })
		p.answered(5, p.clock.Now())
	})
	if codes := errorsOf(rec); len(codes) > 0 {
		t.Errorf("calls with %q", codes)
	}
	may("+get")
	rec = run(t, Options{Node: i.Addr, Rate: 50}, func(p *probing) {
		p.answered(5, 0)
		may("-get")
		p.until("an error", func(r *recording.Recording) bool { return len(errorsOf(r)) > 0 })
	})
	if codes := errorsOf(rec); !slices.Equal(codes, []string{"NOPERM"}) || slices.ContainsFunc(rec.Events, isSpot) {
		t.Errorf("calls with %q; events %v", codes, rec.Events)
	}
}

// A server that is gone and stays so: what is due waits for a connection, and that is recorded, not left open.
func TestServerGone(t *testing.T) {
	i := redis(t)
	rec := run(t, Options{Node: i.Addr, Rate: 50}, func(p *probing) {
		p.answered(5, 0)
		if err := i.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.until("two attempts", func(r *recording.Recording) bool {
			n := 0
			for _, e := range r.Events {
				if e.Kind == recording.KindError && recording.DetailOf[recording.ErrorDetail](e).Phase == "connect" {
					n++
				}
			}
			return n >= 2
		})
	})
	unfinished := 0
	for _, c := range rec.Calls {
		if c.Error != Unfinished {
			continue
		}
		unfinished++
		var dialled int64
		for _, s := range rec.SegmentsOf(c.ID) {
			if s.Actor == recording.App && s.State == recording.Dial {
				dialled += s.ToNs - s.FromNs
			}
		}
		if dialled < (c.EndNs-c.StartNs)*9/10 && c.EndNs-c.StartNs > 1e6 {
			t.Errorf("%+v: %+v", c, rec.SegmentsOf(c.ID))
		}
	}
	if unfinished == 0 {
		t.Error("no call was unfinished")
	}
}

// Whatever the rate, call k is due within slot k of an absolute schedule.
func TestSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSlots(rapid.Int64Range(0, 1<<62).Draw(t, "start"), rapid.Float64Range(0.1, 10_000).Draw(t, "rate"))
		for want := range int64(50) {
			d := s.next()
			from := s.startNs + d.k*s.widthNs
			if d.k != want || d.atNs < from || d.atNs >= from+s.widthNs {
				t.Fatalf("call %d due at %v, its slot begins at %v", d.k, d.atNs, from)
			}
		}
	})
}
