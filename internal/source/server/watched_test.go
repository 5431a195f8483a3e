package server_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/house/await"
	"slowpath/internal/recording"
	"slowpath/internal/source/server"
	"slowpath/internal/wire/target"
)

// locked is a recording in memory for several goroutines.
type locked struct {
	mu  sync.Mutex
	rec *recording.Recording
}

func (l *locked) Call(c recording.Call, s ...recording.Segment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rec.Call(c, s...)
}

func (l *locked) Histogram(h recording.Histogram) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rec.Histogram(h)
}

func (l *locked) Sample(s recording.Sample) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rec.Sample(s)
}

func (l *locked) ConnUse(client string, u recording.ConnUse) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rec.ConnUse(client, u)
}

func (l *locked) Event(e recording.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rec.Event(e)
}

func (l *locked) Snapshot(s recording.Snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rec.Snapshot(s)
}

func (l *locked) SetMeta(k, v string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rec.SetMeta(k, v)
}

// watched is a watch in progress.
type watched struct {
	t      testing.TB
	sink   *locked
	node   string
	cancel context.CancelFunc
	done   chan error
	clock  *clock.Real
}

const node = "node"

func watch(t testing.TB, to target.Target, change ...func(*server.Options)) *watched {
	t.Helper()
	return watchBy(context.Background(), t, to, change...)
}

// watchBy is watch with a context by which the server is reached.
func watchBy(ctx context.Context, t testing.TB, to target.Target, change ...func(*server.Options)) *watched {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	w := &watched{
		t: t, sink: &locked{rec: recording.New()}, node: node, cancel: cancel, done: make(chan error, 1),
		clock: clock.New(),
	}
	o := server.Options{Target: to, Node: node, Clock: w.clock, Sink: w.sink, Every: 50 * time.Millisecond, Budget: 1}
	for _, c := range change {
		c(&o)
	}
	go func() { w.done <- server.Watch(ctx, o) }()
	t.Cleanup(cancel)
	return w
}

// polls counts the answered polls so far.
func (w *watched) polls() int {
	w.sink.mu.Lock()
	defer w.sink.mu.Unlock()
	n, _ := w.sink.rec.Series(recording.SourceServer, node, "self.polls").Last()
	return int(n)
}

// more waits for so many more polls.
func (w *watched) more(n int) {
	w.t.Helper()
	want := w.polls() + n
	await.Until(w.t, "more polls", func() bool { return w.polls() >= want })
}

// event waits for an event of a kind.
func (w *watched) event(kind string) recording.Event {
	w.t.Helper()
	var found recording.Event
	await.Until(w.t, "an event "+kind, func() bool {
		w.sink.mu.Lock()
		defer w.sink.mu.Unlock()
		for _, e := range w.sink.rec.Events {
			if e.Kind == kind {
				found = e
				return true
			}
		}
		return false
	})
	return found
}

// end ends the watch and gives what it saw.
func (w *watched) end() *recording.Recording {
	w.t.Helper()
	w.cancel()
	if err := <-w.done; err != nil {
		w.t.Fatal(err)
	}
	w.sink.rec.Index()
	return w.sink.rec
}

func series(rec *recording.Recording, name string) recording.Series {
	return rec.Series(recording.SourceServer, node, name)
}

// blindSpots gives what could not be seen, by what.
func blindSpots(t *testing.T, rec *recording.Recording) map[string]recording.BlindSpot {
	t.Helper()
	out := map[string]recording.BlindSpot{}
	for _, e := range rec.EventsOf(recording.SourceServer, node, recording.KindBlindSpot) {
		b := recording.DetailOf[recording.BlindSpot](e)
		if b.What == "" || b.Why == "" || b.Enable == "" {
			t.Errorf("%+v", b)
		}
		if _, twice := out[b.What]; twice {
			t.Errorf("twice: %+v", b)
		}
		out[b.What] = b
	}
	return out
}
