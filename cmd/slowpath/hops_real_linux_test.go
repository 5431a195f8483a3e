package main

import (
	"context"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"slowpath/internal/cli"
	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/lab/traffic"
	"slowpath/internal/recording"
	"slowpath/internal/source/server"
)

// TestHops: a call through HAProxy and twemproxy, or Envoy, is one call, and the hop that is at fault is named: the
// inner one, which is stopped again and again.
func TestHops(t *testing.T) {
	needs.Real(t, needs.Root, needs.BPF, needs.RedisServer, needs.QuietCPU)
	for process, start := range map[string]startProxy{
		"nutcracker": (*fleet.Fleet).StartTwemproxy, "envoy": (*fleet.Fleet).StartEnvoy,
	} {
		t.Run(process, func(t *testing.T) { testHops(t, process, start) })
	}
}

type startProxy = func(*fleet.Fleet, context.Context, ...*fleet.Instance) (*fleet.Instance, error)

func testHops(t *testing.T, process string, startInner startProxy) {
	if err := kernelSource(); err != nil {
		t.Skip(err)
	}
	slowpath, err := exec.LookPath("slowpath")
	if err != nil {
		t.Fatal(err)
	}
	s := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	inner := fleettest.StartProxy(t, startInner, s)
	outer := fleettest.StartProxy(t, (*fleet.Fleet).StartHAProxy, inner)
	load := traffic.Start(t.Context(), traffic.Spec{
		Addr: outer.Addr, Conns: 5, Rate: 200, Command: traffic.Mixed(1000),
	})
	defer load.Stop()
	doctor := exec.Command(slowpath, "doctor", "--json", "--for", "4s", outer.Addr, inner.Addr, s.Addr)
	stopped := make(chan struct{})
	go func() { // the fault itself
		defer close(stopped)
		defer func() { _ = syscall.Kill(inner.PID, syscall.SIGCONT) }()
		for end := time.Now().Add(6 * time.Second); time.Now().Before(end); await.Pass(300 * time.Millisecond) {
			_ = syscall.Kill(inner.PID, syscall.SIGSTOP)
			await.Pass(200 * time.Millisecond)
			_ = syscall.Kill(inner.PID, syscall.SIGCONT)
		}
	}()
	out, err := doctor.Output()
	<-stopped
	if err != nil && doctor.ProcessState.ExitCode() != cli.ExitFindings {
		t.Fatalf("%v: %s", err, out)
	}
	var d verdict.Diagnosis
	if err := json.Unmarshal(out, &d); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if len(d.Hops) != 3 || d.Hops[0].Node != outer.Addr || d.Hops[1].Node != inner.Addr || d.Hops[2].Node != s.Addr {
		t.Fatalf("hops: %+v", d.Hops)
	}
	if h := d.Hops[1]; h.Process != process || h.Share < 0.5 || h.State != recording.Frozen || h.Summary == "" {
		t.Errorf("%+v", h)
	}
	// On a crowded host the wait for a CPU may take more of the calls' time.
	if !slices.ContainsFunc(d.Findings, func(f cause.Finding) bool {
		return f.Cause == "process-frozen" && slices.Equal(f.Nodes, []string{inner.Addr})
	}) {
		t.Errorf("%+v", d.Findings)
	}
	// Neither has an INFO of its own; Envoy would ask all its servers.
	if !slices.ContainsFunc(d.BlindSpots, func(b recording.BlindSpot) bool {
		return b.What == server.OwnCounters && strings.Contains(b.Enable, "not of a proxy")
	}) {
		t.Errorf("not seen: %+v", d.BlindSpots)
	}
	// 1 000 calls at most can have been due, and each has two more at the other hops
	if p := d.Populations[0]; p.Name != "users" || p.Calls < 100 || p.Calls > 1300 {
		t.Errorf("%+v", p)
	}
}
