package probe

import (
	"context"
	"io"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"slowpath/internal/clock"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/servers"
	"slowpath/internal/recording"
	"slowpath/internal/target"
)

// locked makes an in-memory recording safe for the probe's goroutines.
type locked struct {
	mu  sync.Mutex
	rec *recording.Recording
}

func (l *locked) Call(c recording.Call, s ...recording.Segment) { l.do(func() { l.rec.Call(c, s...) }) }
func (l *locked) Histogram(h recording.Histogram)               { l.do(func() { l.rec.Histogram(h) }) }
func (l *locked) Sample(s recording.Sample)                     { l.do(func() { l.rec.Sample(s) }) }
func (l *locked) Event(e recording.Event)                       { l.do(func() { l.rec.Event(e) }) }
func (l *locked) Snapshot(s recording.Snapshot)                 { l.do(func() { l.rec.Snapshot(s) }) }
func (l *locked) SetMeta(k, v string)                           { l.do(func() { l.rec.SetMeta(k, v) }) }
func (l *locked) do(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// redis starts a real server that allows DEBUG SLEEP.
func redis(t *testing.T) *fleet.Instance {
	t.Helper()
	reg, err := fleet.OpenRegistry(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f, err := fleet.New(reg)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := servers.OpenCache("")
	if err != nil {
		t.Fatal(err)
	}
	bin, err := cache.Get(t.Context(), servers.Redis7015, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	i, err := f.Start(t.Context(), bin, fleet.Spec{Config: []string{"enable-debug-command yes"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return i
}

// run probes until stop returns, and gives what was recorded.
func run(t *testing.T, o Options, stop func()) *recording.Recording {
	t.Helper()
	tg, err := target.Parse(o.Node)
	if err != nil {
		t.Fatal(err)
	}
	sink := &locked{rec: recording.New()}
	o.Target, o.Clock, o.Sink = tg, clock.New(), sink
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Watch(ctx, o) }()
	stop()
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	sink.rec.Index()
	return sink.rec
}

// A stall of half a second at 100 calls per second is some fifty slow calls, each from when it was due: not one.
func TestStallIsNotOmitted(t *testing.T) {
	i := redis(t)
	rec := run(t, Options{Node: i.Addr, Rate: 100}, func() {
		time.Sleep(300 * time.Millisecond) // the connection is open and calls are usual
		if _, err := i.Do(t.Context(), "DEBUG", "SLEEP", "0.5"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond)
	})
	var slow []recording.Call
	for _, c := range rec.Calls {
		if c.EndNs-c.IntendedNs > int64(20*time.Millisecond) {
			slow = append(slow, c)
		}
	}
	if len(slow) < 30 || len(slow) > 80 {
		t.Fatalf("%d slow calls of %d, want about 50", len(slow), len(rec.Calls))
	}
	first, last := slow[0], slow[len(slow)-1]
	if first.EndNs-first.IntendedNs < last.EndNs-last.IntendedNs {
		t.Error("the call that was due first must have waited longest")
	}
	for k := 1; k < len(rec.Calls); k++ {
		if gap := rec.Calls[k].IntendedNs - rec.Calls[k-1].IntendedNs; gap > int64(21*time.Millisecond) {
			t.Fatalf("nothing was due for %v: a slot was left out", time.Duration(gap))
		}
	}
}

// Calls that are still waiting when the watch ends are recorded: a server that is stopped for good leaves more than nothing.
func TestUnfinishedCalls(t *testing.T) {
	i := redis(t)
	rec := run(t, Options{Node: i.Addr, Rate: 100, FreshRate: 10}, func() {
		time.Sleep(200 * time.Millisecond)
		go i.Do(context.Background(), "DEBUG", "SLEEP", "1")
		time.Sleep(400 * time.Millisecond)
	})
	kept, fresh := 0, 0
	for _, c := range rec.Calls {
		if c.Error != Unfinished {
			continue
		}
		if c.Conn == Kept {
			kept++
		} else {
			fresh++
		}
	}
	if kept < 20 || fresh < 2 {
		t.Errorf("%d kept and %d fresh calls unfinished", kept, fresh)
	}
}

func TestPhasesOfFreshConnections(t *testing.T) {
	i := redis(t)
	rec := run(t, Options{Node: i.Addr, FreshRate: 50}, func() { time.Sleep(300 * time.Millisecond) })
	if len(rec.Calls) < 5 {
		t.Fatalf("%d calls", len(rec.Calls))
	}
	for _, c := range rec.Calls {
		if c.Error == Unfinished {
			continue
		}
		if c.Error != "" || c.Conn != Fresh {
			t.Fatalf("%+v", c)
		}
		connect, at := false, c.IntendedNs
		for _, s := range rec.Segments[c.ID] {
			if s.FromNs < at || s.ToNs < s.FromNs || s.ToNs > c.EndNs {
				t.Errorf("segment %+v of %+v", s, c)
			}
			at = s.ToNs
			connect = connect || s.Culprit == "connect"
		}
		if !connect {
			t.Errorf("no connect in %+v", rec.Segments[c.ID])
		}
	}
	if len(rec.Histograms) == 0 {
		t.Error("no histograms")
	}
}

// The server goes away and comes back: the probe goes on, and says what happened.
func TestServerRestarts(t *testing.T) {
	i := redis(t)
	rec := run(t, Options{Node: i.Addr, Rate: 50}, func() {
		time.Sleep(200 * time.Millisecond)
		if err := i.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond)
		if err := i.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(600 * time.Millisecond)
	})
	if es := rec.EventsOf(recording.SourceProbe, i.Addr, recording.KindError); len(es) == 0 {
		t.Error("no error was recorded")
	}
	last := rec.Calls[len(rec.Calls)-1]
	if last.Error != "" {
		t.Errorf("the last call failed: %+v", last)
	}
}

// Whatever the rate, call k is due within slot k of an absolute schedule.
func TestSlots(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSlots(rapid.Float64Range(0.1, 10_000).Draw(t, "rate"))
		for want := range int64(50) {
			k, at := s.next()
			from := s.start.Add(time.Duration(k) * s.width)
			if k != want || at.Before(from) || !at.Before(from.Add(s.width)) {
				t.Fatalf("call %d due at %v, its slot begins at %v", k, at, from)
			}
		}
	})
}
