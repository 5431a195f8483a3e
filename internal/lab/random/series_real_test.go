package random

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/house/needs"
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

// TestRun makes a real drawn scenario, with shorter trials: the fault that pauses the callers is the truth, and each
// tier has the verdict of its recording.
func TestRun(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	file := filepath.Join(t.TempDir(), "1.slowpath")
	var log bytes.Buffer
	l, err := scenario.New(servers.Redis7015, &log)
	if err != nil {
		t.Fatal(err)
	}
	r := Run{Seed: 1, Drawn: pausedAndFar()}
	err = Maker{Record: record, Log: &log}.run(t.Context(), &r, l, 400*time.Millisecond, file)
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
	r.Line(t.Output())
	if !r.Costs[0].Hurts || r.Truth[0].Cause != "client-pause-or-write-block" || r.Costs[0].CostNs <= 0 {
		t.Errorf("costs %+v", r.Costs)
	}
	// Whether it is right on a busy machine, whose pauses may never end, is for grade to say.
	rec, err := recording.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, tier := range recording.Tiers {
		d := verdict.Diagnose(rec.Without(tier.Without...), "test")
		if j := r.Tiers[tier.Name]; j.Verdict != d.Verdict || len(j.Findings) != len(d.Findings) {
			t.Errorf("%s: %+v, and the recording is judged: %s", tier.Name, j, d.Summary)
		}
	}
}
