package watching

import (
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"slowpath/internal/agent/metrics"
	"slowpath/internal/clock"
	"slowpath/internal/diagnose/corpus"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/lab/traffic"
	"slowpath/internal/live"
	"slowpath/internal/recording"
	"slowpath/internal/source"
	"slowpath/internal/wire/target"
)

// TestSameNumbersOfTheCorpus is TestSameNumbersEverywhere on all recordings.
func TestSameNumbersOfTheCorpus(t *testing.T) {
	needs.Real(t)
	for _, scenario := range corpus.Scenarios() {
		t.Run(scenario, func(t *testing.T) { sameNumbers(t, corpus.Open(t, scenario)) })
	}
}

// ahead is the real clock, or one that is ahead of it.
type ahead struct {
	*clock.Real
	by atomic.Int64
}

func (a *ahead) Now() int64 { return a.Real.Now() + a.by.Load() }

// TestSameNumbersOfAWatch: a real server with slow commands is watched into a recording and live at once.
func TestSameNumbersOfAWatch(t *testing.T) {
	needs.Real(t, needs.Root, needs.BPF)
	s := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	for _, load := range []traffic.Spec{
		{Addr: s.Addr, Conns: 4, Rate: 400, Command: traffic.Mixed(1000)},
		{Addr: s.Addr, Conns: 1, Rate: 4, Command: traffic.Always("EVAL", "for i=1,2e6 do end", "0")},
	} {
		l := traffic.Start(t.Context(), load)
		defer l.Stop()
	}
	to, err := target.Parse(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "watch.slowpath")
	w, err := recording.Create(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := &ahead{Real: clock.New()}
	v := live.New(live.Options{Clock: c})
	m := metrics.New(metrics.Options{View: v})
	err = source.Run(t.Context(), source.Options{
		Targets: []target.Target{to}, For: 5 * time.Second, Slow: "auto", Clock: c.Real, Version: "test",
	}, live.Tee(w, v))
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	c.by.Store(int64(afterwards))
	rec, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	compareViews(t, rec, v, m, c)
}
