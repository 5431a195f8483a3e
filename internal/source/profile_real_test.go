package source_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slowpath/internal/house/needs"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/clients/programs/protocol"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/recording"
	"slowpath/internal/source"
	"slowpath/internal/source/profile"
	"slowpath/internal/wire/target"
)

// goredis6 starts the lab's client with go-redis v6.15.9, and gives where its net/http/pprof is.
func goredis6(t *testing.T, o clients.Options) profile.Target {
	t.Helper()
	cache, err := clients.OpenCache("")
	if err != nil {
		t.Fatal(err)
	}
	program, err := cache.Get(t.Context(), clients.GoRedis6, t.Output())
	if errors.Is(err, clients.ErrTool) || errors.Is(err, clients.ErrRegistry) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	o.Listen, o.Commands = "127.0.0.1:0", []clients.Command{{Args: []string{"GET", "key"}}}
	run, err := program.Start(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(run.Kill)
	ready, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := run.AwaitReady(ready); err != nil {
		t.Fatal(err)
	}
	ts, err := profile.Targets([]string{run.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	return ts[0]
}

// diagnose watches a server and an application without the tap, through a file as doctor does.
func diagnose(t *testing.T, addr string, app profile.Target) verdict.Diagnosis {
	t.Helper()
	to, err := (&target.Options{}).Targets([]string{addr}, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "watch.slowpath")
	w, err := recording.Create(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	err = source.Run(t.Context(), source.Options{
		Targets: to, For: 2 * time.Second, Slow: "auto", Version: "test",
		NoTap: true, Profiles: []profile.Target{app},
	}, w)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	rec, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return verdict.Diagnose(rec, "test")
}

// foundIn says what a cause's finding rests on.
func foundIn(t *testing.T, d verdict.Diagnosis, id, fact string) {
	t.Helper()
	for _, f := range d.Findings {
		if f.Cause != id {
			continue
		}
		for _, e := range f.Evidence {
			if e.Source == recording.SourceProfile && strings.Contains(e.Text, fact) && f.Doubts == 0 {
				return
			}
		}
	}
	t.Errorf("no %s with %q: %+v; blind spots %+v", id, fact, d.Findings, d.BlindSpots)
}

// TestGoRedis6OnRedis6: go-redis v6 cannot read the reply of Redis 6.0 to COMMAND.
func TestGoRedis6OnRedis6(t *testing.T) {
	needs.Real(t)
	c := fleettest.StartCluster(t, servers.Redis6016, 3, 0, fleet.Spec{})
	d := diagnose(t, c.Addrs()[0], goredis6(t, clients.Options{
		Addresses: c.Addrs(), Mode: protocol.Cluster,
		Workers: 30,
	}))
	foundIn(t, d, "cmdinfo-once-lock", "in calls of go-redis wait for the lock of Once.Do")
	foundIn(t, d, "cmdinfo-once-lock", "mutex delay")
	if len(d.Findings) > 0 && (d.Findings[0].Cause != "cmdinfo-once-lock" ||
		!strings.Contains(strings.Join(d.Findings[0].Fix, " "), "go-redis v6")) {
		t.Errorf("first is %+v", d.Findings[0])
	}
}

// TestPoolOfTwo: thirty callers share two connections.
func TestPoolOfTwo(t *testing.T) {
	needs.Real(t)
	s := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	d := diagnose(t, s.Addr, goredis6(t, clients.Options{Addresses: []string{s.Addr}, Workers: 30, PoolSize: 2}))
	foundIn(t, d, "pool-exhausted-wait", "in calls of go-redis wait for a connection of the pool")
}

// TestPoolWithRoom: every caller has its connection.
func TestPoolWithRoom(t *testing.T) {
	needs.Real(t)
	s := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	d := diagnose(t, s.Addr, goredis6(t, clients.Options{Addresses: []string{s.Addr}, Workers: 3, PoolSize: 10}))
	for _, f := range d.Findings {
		if f.Cause == "pool-exhausted-wait" || f.Cause == "cmdinfo-once-lock" {
			t.Errorf("%+v", f)
		}
	}
}
