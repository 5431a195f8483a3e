package random

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/scenario"
	"slowpath/internal/lab/servers"
	"slowpath/internal/recording"
	"slowpath/internal/source"
	"slowpath/internal/wire/target"
)

// record watches in this process, for a shorter time, and without the kernel: it needs no privilege.
func record(ctx context.Context, watched []string, _ time.Duration, file string) error {
	to, err := (&target.Options{}).Targets(watched, func(string) string { return "" })
	if err != nil {
		return err
	}
	w, err := recording.Create(file, 0)
	if err != nil {
		return err
	}
	err = source.Run(ctx, source.Options{
		Targets: to, For: 2 * time.Second, Slow: "auto", Version: "test", NoTap: true,
	}, w)
	return errors.Join(err, w.Close())
}

// pausedAndFar are callers behind a proxy, with one fault that hurts them and one that does nothing to them.
func pausedAndFar() Drawn {
	return Drawn{
		Server: servers.Redis7015, Topology: scenario.Proxied, DelayMs: 0.5,
		Callers: []Caller{{Program: scenario.SharedConn, Workers: 4, PerSecond: 200, Reads: 1, Items: 2}},
		Faults: []Fault{
			{"client-pause-or-write-block", "client-pause-or-write-block", scenario.Strength{
				"every_ms": 200, "pause_ms": 120,
			}},
			{"rtt-floor", "rtt-floor", scenario.Strength{"delay_ms": 0}},
		},
	}
}

// TestRun makes a real drawn scenario, with shorter trials: the fault that pauses the callers is the truth, and named
// first.
func TestRun(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	file := filepath.Join(t.TempDir(), "1.slowpath")
	var log bytes.Buffer
	l, err := scenario.New(servers.Redis7015, &log)
	if err != nil {
		t.Fatal(err)
	}
	r := Run{Seed: 1, Drawn: pausedAndFar()}
	err = r.make(t.Context(), l, 400*time.Millisecond, record, file)
	if closing := l.Close(context.WithoutCancel(t.Context())); closing != nil {
		t.Error(closing)
	}
	if left, err := l.Registry.Entries(); err != nil || len(left) > 0 {
		t.Errorf("left in the registry: %v, %v", left, err)
	}
	if errors.Is(err, fault.ErrCannot) || errors.Is(err, servers.ErrRegistry) || errors.Is(err, servers.ErrTool) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("%v; %s", err, &log)
	}
	if err := r.Judge(file, "test"); err != nil {
		t.Fatal(err)
	}
	Line(t.Output(), r)
	if !r.Costs[0].Hurts || r.Truth[0].Cause != "client-pause-or-write-block" || r.Costs[0].CostNs <= 0 {
		t.Errorf("costs %+v", r.Costs)
	}
	if j := r.Tiers["T0"]; !r.isTrue(j.First) {
		t.Errorf("T0: %v", j)
	}
}

// TestSeries: a series makes what its directory lacks, judges the rest again, and stops where it is told to.
func TestSeries(t *testing.T) {
	dir := t.TempDir()
	made := 0
	s := Series{Dir: dir, Seed: 3, N: 3, Version: "1", Done: func(Run) { made++ }, JudgeOnly: true}
	if runs, err := s.Play(t.Context()); err != nil || len(runs) > 0 {
		t.Errorf("an empty directory: %v, %v", runs, err)
	}
	kept := Run{Seed: 4, Drawn: Draw(4, ""), Truth: []Truth{{Cause: "slow-command", CostNs: 5, Share: 1}}}
	if err := s.store(kept); err != nil {
		t.Fatal(err)
	}
	w, err := recording.Create(s.path(4, ".slowpath"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s.Version = "2"
	runs, err := s.Play(t.Context())
	if err != nil || len(runs) != 1 || made != 1 || runs[0].Seed != 4 || runs[0].Version != "2" {
		t.Fatalf("%d runs, %v: %+v", made, err, runs)
	}
	if again, err := s.load(4); err != nil || again.Version != "2" || again.Truth[0].Cause != kept.Truth[0].Cause {
		t.Errorf("kept: %+v, %v", again, err)
	}
	s.Server = servers.Valkey811
	if _, err := s.Play(t.Context()); err == nil || !strings.Contains(err.Error(), "without --server") {
		t.Errorf("a directory of all servers goes on with one: %v", err)
	}
	s.Server = ""
	other := kept
	other.Seed, other.Only, other.Skipped = 5, servers.Valkey811, "nothing to judge"
	if err := s.store(other); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Play(t.Context()); err == nil || !strings.Contains(err.Error(), "different choices") {
		t.Errorf("a directory with two choices of servers: %v", err)
	}
	if err := os.Remove(s.path(5, ".json")); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s.JudgeOnly = false
	if runs, err := s.Play(ended); err != nil || len(runs) > 0 {
		t.Errorf("interrupted: %v, %v", runs, err)
	}
	for _, bad := range []string{"", "{}", `{"schema":"slowpath.grade/v1","run":{"seed":5}}`} {
		if err := os.WriteFile(s.path(3, ".json"), []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Play(t.Context()); err == nil {
			t.Errorf("%q is taken as a result", bad)
		}
	}
	if _, err := json.Marshal(Summarise(runs, 3, 3, "2")); err != nil {
		t.Error(err)
	}
}
