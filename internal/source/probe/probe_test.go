package probe

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/house/await"
	"slowpath/internal/recording"
	"slowpath/internal/wire/wiretest"
)

// locked makes an in-memory recording safe for the probe's goroutines.
type locked struct {
	mu  sync.Mutex
	rec *recording.Recording
}

func (l *locked) Call(c recording.Call, s ...recording.Segment) { l.do(func() { l.rec.Call(c, s...) }) }

func (l *locked) Histogram(h recording.Histogram) { l.do(func() { l.rec.Histogram(h) }) }

func (l *locked) Sample(s recording.Sample) { l.do(func() { l.rec.Sample(s) }) }

func (l *locked) ConnUse(client string, u recording.ConnUse) {
	l.do(func() { l.rec.ConnUse(client, u) })
}

func (l *locked) Event(e recording.Event) { l.do(func() { l.rec.Event(e) }) }

func (l *locked) Snapshot(s recording.Snapshot) { l.do(func() { l.rec.Snapshot(s) }) }

func (l *locked) SetMeta(k, v string) { l.do(func() { l.rec.SetMeta(k, v) }) }

func (l *locked) do(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// probing is a probe that runs.
type probing struct {
	t     *testing.T
	clock *clock.Real
	sink  *locked
}

// inMemory runs a probe against a server in memory, in a bubble, until during returns.
func inMemory(t *testing.T, s *wiretest.Server, o Options, during func(p *probing)) *recording.Recording {
	t.Helper()
	o.Node, o.Target = s.Target().Addr(), s.Target()
	return probed(clock.WithTimers(s.Reached(t.Context())), t, o, during)
}

// probed probes until during returns, and gives what was recorded.
func probed(ctx context.Context, t *testing.T, o Options, during func(p *probing)) *recording.Recording {
	t.Helper()
	p := &probing{t: t, clock: clock.New(), sink: &locked{rec: recording.New()}}
	o.Clock, o.Sink = p.clock, p.sink
	ctx, cancel := context.WithCancel(ctx)
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
	await.Until(p.t, what, func() (ok bool) {
		p.sink.do(func() { ok = is(p.sink.rec) })
		return ok
	})
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

// freeze stops the server for a time, and gives when that began and ended.
func (p *probing) freeze(s *wiretest.Server, d time.Duration) (from, to int64) {
	from = p.clock.Now()
	thaw := s.Freeze()
	<-time.After(d)
	to = p.clock.Now()
	thaw()
	return from, to
}

// quick answers each command after a tenth of a millisecond, as a server that has no keys.
func quick(command string) string {
	<-time.After(100 * time.Microsecond)
	switch name, _, _ := strings.Cut(command, " "); name {
	case "PING":
		return "+PONG\r\n"
	case "GET":
		return "$-1\r\n"
	}
	return "+OK\r\n"
}

// A stall of half a second at 100 calls per second is fifty slow calls, each from when it was due, and not one.
func TestStallIsNotOmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const width = int64(10 * time.Millisecond)
		s := wiretest.New(t, quick)
		var from, to int64
		rec := inMemory(t, s, Options{Rate: 100}, func(p *probing) {
			p.answered(5, 0) // the connection is open
			from, to = p.freeze(s, 500*time.Millisecond)
			p.answered(5, to)
		})
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
		if want := (to - from) / width; held < want-1 || held > want+1 {
			t.Errorf("%d calls waited in %v of sleep, want %d", held, time.Duration(to-from), want)
		}
	})
}

// Calls that are still waiting when the watch ends are recorded: those of a server that is stopped for good, too.
func TestUnfinishedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate, freshRate = 100, 10
		s := wiretest.New(t, quick)
		var stopped, end int64
		rec := inMemory(t, s, Options{Rate: rate, FreshRate: freshRate}, func(p *probing) {
			p.answered(5, 0)
			stopped = p.clock.Now()
			s.Freeze()
			<-time.After(400 * time.Millisecond)
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
		if want := (end - stopped) * rate / int64(time.Second); kept < want-1 || kept > want+1 {
			t.Errorf("%d kept calls unfinished, %d were due", kept, want)
		}
		if want := (end - stopped) * freshRate / int64(time.Second); fresh < want-1 || fresh > want+1 {
			t.Errorf("%d fresh calls unfinished, %d were due", fresh, want)
		}
	})
}

// The server goes away and comes back: the probe goes on, and says what happened.
func TestServerRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := wiretest.New(t, quick)
		inMemory(t, s, Options{Rate: 50}, func(p *probing) {
			p.answered(5, 0)
			s.Stop()
			p.until("an error", func(r *recording.Recording) bool {
				return slices.ContainsFunc(r.Events, func(e recording.Event) bool {
					return e.Kind == recording.KindError && e.Source == recording.SourceProbe &&
						e.Subject == s.Target().Addr()
				})
			})
			s.Start()
			p.answered(5, p.clock.Now())
		})
	})
}

// A user that may not GET costs the server's users nothing: the probe sends PING, and says what it could not do. A user
// that could and now cannot is refused, and that is recorded.
func TestUserThatMayNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refused atomic.Bool
		s := wiretest.New(t, func(command string) string {
			if strings.HasPrefix(command, "GET") && refused.Load() {
				return "-NOPERM this user has no permissions to run the 'get' command\r\n"
			}
			return quick(command)
		})
		isSpot := func(e recording.Event) bool { return e.Kind == recording.KindBlindSpot }
		errorsOf := func(rec *recording.Recording) (codes []string) {
			for _, c := range rec.Calls {
				if c.Error != "" && c.Error != Unfinished {
					codes = append(codes, c.Error)
				}
			}
			return slices.Compact(codes)
		}
		refused.Store(true)
		rec := inMemory(t, s, Options{Rate: 50}, func(p *probing) {
			p.until("a blind spot", func(r *recording.Recording) bool { return slices.ContainsFunc(r.Events, isSpot) })
			p.answered(5, p.clock.Now())
		})
		if codes := errorsOf(rec); len(codes) > 0 {
			t.Errorf("calls with %q", codes)
		}
		refused.Store(false)
		rec = inMemory(t, s, Options{Rate: 50}, func(p *probing) {
			p.answered(5, 0)
			refused.Store(true)
			p.until("an error", func(r *recording.Recording) bool { return len(errorsOf(r)) > 0 })
		})
		if codes := errorsOf(rec); !slices.Equal(codes, []string{"NOPERM"}) || slices.ContainsFunc(rec.Events, isSpot) {
			t.Errorf("calls with %q; events %v", codes, rec.Events)
		}
	})
}

// A server that is gone and stays so: what is due waits for a connection, and that is recorded, not left open.
func TestServerGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := wiretest.New(t, quick)
		rec := inMemory(t, s, Options{Rate: 50}, func(p *probing) {
			p.answered(5, 0)
			s.Stop()
			p.until("two attempts", func(r *recording.Recording) bool {
				n := 0
				for _, e := range r.Events {
					if e.Kind == recording.KindError &&
						recording.DetailOf[recording.ErrorDetail](e).Phase == "connect" {
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
	})
}
