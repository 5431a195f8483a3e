package top

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

func causesOf(d verdict.Diagnosis) (ids []string) {
	for _, f := range d.Findings {
		ids = append(ids, f.Cause)
	}
	return ids
}

// TestWindowIsJudgedAsTheRecording: the rows that a window keeps give the same verdict as the recording.
func TestWindowIsJudgedAsTheRecording(t *testing.T) {
	for _, scenario := range []string{
		"slow-command", "server-cfs-throttled", "healthy-mixed", "pool-exhausted-wait", "fork-latency",
		"packet-loss-rto", "server-restarted", "maxclients", "healthy-cluster", "client-gc-pause",
	} {
		t.Run(scenario, func(t *testing.T) {
			rec := wholeRecording(t, scenario)
			p := play(rec)
			p.window.SetMeta(recording.MetaEnd, rec.Meta[recording.MetaEnd])
			seen, ok := p.window.Recording()
			if !ok {
				t.Fatal("no watch")
			}
			want, got := verdict.Of(facts.New(rec), "test"), verdict.Of(facts.New(seen), "test")
			if got.Summary != want.Summary || !slices.Equal(causesOf(got), causesOf(want)) {
				t.Errorf("%s %v, and of the recording %s %v", got.Summary, causesOf(got), want.Summary, causesOf(want))
			}
		})
	}
}

// TestWindowForgets: rows of before are gone, but for the last ones that still hold.
func TestWindowForgets(t *testing.T) {
	c := &hands{1000e9}
	w := NewWindow(c, 10*time.Second)
	if _, ok := w.Recording(); ok {
		t.Error("a recording before the watch has begun")
	}
	w.SetMeta(recording.MetaStart, "1000000000000")
	sample := recording.Sample{
		TimeNs: 1000e9, Source: recording.SourceServer, Subject: "a", Name: "maxclients", Value: 7,
	}
	w.Sample(sample)
	sample.Source, sample.Subject, sample.Name = recording.SourceHost, "process:7", "x"
	w.Sample(sample)
	for i, body := range []string{"1", "2"} {
		w.Snapshot(recording.Snapshot{
			TimeNs: 1000e9 + int64(i)*1e9, Source: recording.SourceHost, Subject: "a", Name: "process", Body: body,
		})
	}
	spot := recording.Event{
		Source: "watch", Kind: recording.KindBlindSpot, Detail: recording.Detail(recording.BlindSpot{What: "x"}),
	}
	w.Event(spot)
	w.Event(spot)
	for second := int64(1000); second < 1400; second++ {
		c.ns = second * 1e9
		w.Call(recording.Call{Source: recording.SourceTap, IntendedNs: c.ns - 1e6, EndNs: c.ns},
			recording.Segment{Actor: recording.Server, State: recording.Busy, FromNs: c.ns - 1e6, ToNs: c.ns})
		w.ConnUse("10.0.0.1:2", recording.ConnUse{TimeNs: c.ns, Calls: second})
	}
	rec, _ := w.Recording()
	from, to := rec.Window()
	if span := to - from; span < 10e9 || span > 10e9+int64(trimEvery) {
		t.Errorf("the window is %v", time.Duration(span))
	}
	if n := len(rec.Calls); n < 10 || n > 16 {
		t.Errorf("%d calls", n)
	}
	if len(rec.SegmentsOf(rec.Calls[0].ID)) != 1 {
		t.Error("a call has lost its segments")
	}
	if s := rec.Series(recording.SourceServer, "a", "maxclients"); len(s) != 1 || s[0].Value != 7 {
		t.Errorf("a value that holds is %v", s)
	}
	if s := rec.Series(recording.SourceHost, "process:7", "x"); len(s) != 0 {
		t.Errorf("a process that is gone has %v", s)
	}
	if s, ok := rec.SnapshotOf(recording.SourceHost, "a", "process"); !ok || s.Body != "2" || len(rec.Snapshots) != 1 {
		t.Errorf("snapshots: %v", rec.Snapshots)
	}
	if n := len(rec.EventsOf("watch", "", recording.KindBlindSpot)); n != 1 {
		t.Errorf("%d blind spots", n)
	}
	if u, ok := rec.LastConnUse("10.0.0.1:2"); !ok || u.Calls != 1399 {
		t.Errorf("use %v", u)
	}
}

// TestWindowIsBounded: many rows at once make it reach less far back, and then it drops some, and says so.
func TestWindowIsBounded(t *testing.T) {
	c := &hands{1000e9}
	w := NewWindow(c, 0)
	w.SetMeta(recording.MetaStart, "1000000000000")
	for i := range int64(10 * windowCalls) {
		c.ns = 1000e9 + i*2e6 // 100 s
		w.Call(recording.Call{IntendedNs: c.ns - 1e6, EndNs: c.ns})
		if len(w.calls) > 2*windowCalls {
			t.Fatalf("%d calls", len(w.calls))
		}
	}
	rec, _ := w.Recording()
	from, to := rec.Window()
	span, dropped := time.Duration(to-from), rec.Meta[recording.MetaDropped]
	if span < leastSpan || span > DefaultSpan || dropped != "" {
		t.Errorf("%v, dropped %q", span, dropped)
	}
	for range 5 * windowCalls { // at one time
		w.Call(recording.Call{IntendedNs: c.ns - 1e6, EndNs: c.ns})
	}
	for i := range 2 * windowSeries {
		w.Sample(recording.Sample{TimeNs: c.ns, Name: fmt.Sprint(i)})
		w.ConnUse(fmt.Sprint(i), recording.ConnUse{TimeNs: c.ns})
	}
	for range 300 {
		w.Snapshot(recording.Snapshot{TimeNs: c.ns, Body: string(make([]byte, 1<<20))})
	}
	if len(w.calls) > 2*windowCalls || w.size() > 3*windowBytes || len(w.samples)+len(w.uses) > 2*windowSeries {
		t.Errorf("%d calls, %d bytes, %d series", len(w.calls), w.size(), len(w.samples)+len(w.uses))
	}
	if rec, _ = w.Recording(); rec.Meta[recording.MetaDropped] == "" {
		t.Error("that rows were dropped is not said")
	}
}

// TestJudgeIsDue: how often it judges hangs on slow calls, and on what it has cost.
func TestJudgeIsDue(t *testing.T) {
	c := &hands{1000e9}
	j := NewJudge(NewWindow(c, 0), c, "test", nil, nil)
	due := func(seconds int64, slow uint64) bool { return j.due((1000+seconds)*1e9, slow) }
	if due(4, 9) || !due(5, 0) {
		t.Error("the first one is not after 5 s")
	}
	j.last, j.slow = 1005e9, 9
	for _, c := range []struct {
		seconds int64
		slow    uint64
		want    bool
	}{{9, 10, false}, {10, 10, true}, {10, 9, false}, {24, 9, false}, {25, 9, true}} {
		if due(c.seconds, c.slow) != c.want {
			t.Errorf("after %d s with %d slow calls: %v", c.seconds, c.slow, !c.want)
		}
	}
	j.left = -time.Second // 250 s of 0.4 %
	if due(125, 10) || due(274, 10) || !due(276, 10) {
		t.Error("what judging costs does not count")
	}
	if due(100_000, 10); j.left > judgeAtOnce {
		t.Errorf("%v may be used at once", j.left)
	}
}

// TestJudgeInBackground: it judges what a window holds, when it is asked.
func TestJudgeInBackground(t *testing.T) {
	rec := wholeRecording(t, "slow-command")
	p := play(rec)
	got := make(chan Verdict, 1)
	j := NewJudge(p.window, clock.New(), "test", func() uint64 { return 0 }, func(v Verdict) { got <- v })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	ended := make(chan struct{})
	go func() { j.Run(ctx); close(ended) }()
	j.Ask()
	select {
	case v := <-got:
		if ids := causesOf(v.Diagnosis); v.Failed != "" || len(ids) == 0 || ids[0] != "slow-command" || v.Took <= 0 {
			t.Errorf("%v %q, took %v", ids, v.Failed, v.Took)
		}
	case <-ctx.Done():
		t.Error("no verdict in a minute")
	}
	cancel()
	<-ended
}
