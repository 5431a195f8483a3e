package ring_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"slowpath/internal/agent/folder/foldertest"
	"slowpath/internal/agent/ring"
	"slowpath/internal/clock"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/scenario"
	"slowpath/internal/lab/servers"
	"slowpath/internal/live"
	"slowpath/internal/recording"
	"slowpath/internal/source"
	"slowpath/internal/wire/target"
)

// TestRealScenario: of a real watch of a real scenario, as an agent has it, a window that is saved while it goes on is
// said to have its cause, as a recording of the whole watch is.
func TestRealScenario(t *testing.T) {
	needs.Real(t, needs.Root, needs.BPF)
	windowOf(t, "slow-command")
}

// windowOf makes a scenario and watches it.
func windowOf(t *testing.T, id string) {
	t.Helper()
	in, ok := scenario.Find(id)
	if !ok {
		t.Fatal("no such scenario")
	}
	l, err := scenario.New(servers.Redis7015, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			t.Log(err)
		}
	})
	scene, err := in.Make(t.Context(), l)
	if errors.Is(err, fault.ErrCannot) || errors.Is(err, servers.ErrRegistry) || errors.Is(err, servers.ErrTool) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	// A busy machine may be another cause beside it, and the first; while it is much too busy, the only one.
	const watches = 5
	var a, b []string
	for range watches {
		window, whole := watchBoth(t, scene.Target)
		a, b = causes(t, window), causes(t, whole)
		if slices.Contains(a, in.Cause) && slices.Contains(b, in.Cause) {
			return
		}
	}
	t.Errorf("the window is judged as %q, the whole watch as %q", a, b)
}

// watchBoth watches into a ring and a recording, and saves a window of the ring meanwhile.
func watchBoth(t *testing.T, address string) (window, whole string) {
	t.Helper()
	to, err := target.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	c := clock.New()
	r, err := ring.Open(ring.Options{
		Folder: foldertest.Open(t, t.TempDir()), Each: 2 * time.Second, Clock: c, Log: func(s string) { t.Error(s) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	window, whole = filepath.Join(t.TempDir(), "window.slowpath"), filepath.Join(t.TempDir(), "whole.slowpath")
	w, err := recording.Create(whole, 0)
	if err != nil {
		t.Fatal(err)
	}
	seen := &slowCalls{Writer: w}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- source.Run(ctx, source.Options{
			Targets: []target.Target{to}, Slow: "auto", Clock: c, ProbeRate: 10, Sparing: true,
		}, live.Tee(r, seen))
	}()
	const files, enough = 6 * time.Second, 40
	await.Until(t, "the ring has several files, and enough slow calls", func() bool {
		s := r.Status()
		return s.To.Sub(s.From) >= files && seen.count.Load() >= enough
	})
	if err := saveAt(t, r, time.Unix(0, seen.first.Load()), time.Unix(0, c.Now()), window); err != nil {
		t.Error(err)
	}
	cancel()
	if err := errors.Join(<-ended, w.Close()); err != nil {
		t.Fatal(err)
	}
	return window, whole
}

// slowCalls counts the slow calls of clients that a recording gets. On a busy machine the sources begin late.
type slowCalls struct {
	*recording.Writer
	count, first atomic.Int64 // first is when the first of them began
}

func (s *slowCalls) Call(c recording.Call, segs ...recording.Segment) {
	if c.Source == recording.SourceTap && c.EndNs-c.IntendedNs >= int64(20*time.Millisecond) {
		s.count.Add(1)
		s.first.CompareAndSwap(0, c.IntendedNs)
	}
	s.Writer.Call(c, segs...)
}

func causes(t *testing.T, path string) (found []string) {
	t.Helper()
	rec, err := recording.OpenToJudge(path)
	if err != nil {
		t.Fatal(err)
	}
	d := verdict.Diagnose(rec, "test")
	t.Logf("%s: %s", filepath.Base(path), strings.TrimSpace(d.Summary))
	for _, f := range d.Findings {
		found = append(found, f.Cause)
	}
	return found
}
