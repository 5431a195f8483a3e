package watch_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slowpath/internal/cause"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/profile"
	"slowpath/internal/recording"
	"slowpath/internal/target"
	"slowpath/internal/watch"
)

// goredis6 builds and starts the program with go-redis v6.15.9, and gives where its net/http/pprof is.
func goredis6(t *testing.T, args ...string) profile.Target {
	t.Helper()
	program := filepath.Join(t.TempDir(), "goredis6")
	build := func(argv ...string) ([]byte, error) {
		cmd := exec.CommandContext(t.Context(), "go", argv...)
		cmd.Dir, cmd.Env = "_goredis6", append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly")
		return cmd.CombinedOutput()
	}
	if out, err := build("mod", "download", "github.com/go-redis/redis"); err != nil {
		t.Skipf("go-redis v6 cannot be had: %v: %s", err, out)
	}
	if out, err := build("build", "-o", program, "."); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(program, args...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatal("the program ended at once")
	}
	ts, err := profile.Targets([]string{lines.Text()})
	if err != nil {
		t.Fatal(err)
	}
	return ts[0]
}

// verdict watches a server and an application without the kernel source, through a file as doctor does.
func verdict(t *testing.T, addr string, app profile.Target) cause.Diagnosis {
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
	err = watch.Run(t.Context(), watch.Options{Targets: to, For: 4 * time.Second, Slow: "auto", Version: "test", NoTap: true, Profiles: []profile.Target{app}}, w)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	rec, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return cause.Diagnose(rec, "test")
}

// foundIn says what a cause's finding rests on.
func foundIn(t *testing.T, d cause.Diagnosis, id, fact string) {
	t.Helper()
	for _, f := range d.Findings {
		if f.Cause != id {
			continue
		}
		for _, e := range f.Evidence {
			if e.Source == recording.SourceProfile && strings.Contains(e.Text, fact) && f.Confidence > 0.9 {
				return
			}
		}
	}
	t.Errorf("no %s with %q: %+v; blind spots %+v", id, fact, d.Findings, d.BlindSpots)
}

// TestGoRedis6OnRedis6 is incident 000: go-redis v6 cannot read the reply of Redis 6.0 to COMMAND.
func TestGoRedis6OnRedis6(t *testing.T) {
	cache, err := servers.OpenCache(os.Getenv("SLOWPATH_TEST_SERVERS"))
	if err != nil {
		t.Fatal(err)
	}
	bin, err := cache.Get(t.Context(), servers.Redis6016, t.Output())
	if errors.Is(err, servers.ErrRegistry) || errors.Is(err, servers.ErrTool) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	registry, err := fleet.OpenRegistry(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f, err := fleet.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	c, err := f.StartCluster(t.Context(), bin, 3, 0, fleet.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	d := verdict(t, c.Addrs()[0], goredis6(t, "-cluster", strings.Join(c.Addrs(), ",")))
	foundIn(t, d, "cmdinfo-once-lock", "in calls of go-redis wait for the lock of Once.Do")
	foundIn(t, d, "cmdinfo-once-lock", "delay at mutexes")
	if len(d.Findings) > 0 && (d.Findings[0].Cause != "cmdinfo-once-lock" || !strings.Contains(strings.Join(d.Findings[0].Fix, " "), "go-redis v6")) {
		t.Errorf("first is %+v", d.Findings[0])
	}
}

// TestPoolOfTwo: thirty callers share two connections.
func TestPoolOfTwo(t *testing.T) {
	s := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	d := verdict(t, s.Addr, goredis6(t, "-single", s.Addr, "-pool", "2"))
	foundIn(t, d, "pool-exhausted-wait", "in calls of go-redis wait for a connection of the pool")
}

// TestPoolWithRoom: every caller has its connection.
func TestPoolWithRoom(t *testing.T) {
	s := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	d := verdict(t, s.Addr, goredis6(t, "-single", s.Addr, "-workers", "3", "-pool", "10"))
	for _, f := range d.Findings {
		if f.Cause == "pool-exhausted-wait" || f.Cause == "cmdinfo-once-lock" {
			t.Errorf("%+v", f)
		}
	}
}
