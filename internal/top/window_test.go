package top

import (
	"context"
	"slices"
	"testing"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/live"
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

// TestJudgeIsDue: how often it judges hangs on slow calls, and on what it has cost.
func TestJudgeIsDue(t *testing.T) {
	c := &hands{1000e9}
	j := NewJudge(live.NewWindow(c, 0), c, "test", nil, nil)
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
	publish := func(v Verdict, _ *account.Ledger) { got <- v }
	j := NewJudge(p.window, clock.New(), "test", func() uint64 { return 0 }, publish)
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
