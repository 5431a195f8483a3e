package apps

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
)

// telemetry is the application that is built in no time.
func telemetry(t *testing.T) Program {
	t.Helper()
	a, err := Lookup("telemetry")
	if err != nil {
		t.Fatal(err)
	}
	return program(t, a)
}

// TestNoServer: an application that never succeeds is not started, and leaves no process.
func TestNoServer(t *testing.T) {
	needs.Real(t)
	p := telemetry(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := p.Start(ctx, t.TempDir(), Options{Addr: "127.0.0.1:1"})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "Connection refused") {
		t.Error(err)
	}
}

// TestDeadProcess: a process that ended before Stop is reported, and a second Stop says the same.
func TestDeadProcess(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	s := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	r, err := telemetry(t).Start(t.Context(), t.TempDir(), Options{Addr: s.Addr})
	if err != nil {
		t.Fatal(err)
	}
	pid := r.PIDs()[0]
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-r.processes[0].exited
	for range 2 {
		stats, err := r.Stop()
		if !errors.Is(err, ErrEnded) || !strings.Contains(err.Error(), "had ended (signal: killed): ") ||
			len(stats.Lines) == 0 {
			t.Errorf("%v, %v", stats, err)
		}
	}
}

// TestFrozenProcess: a process that does not end by SIGTERM is killed.
func TestFrozenProcess(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	s := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	p := telemetry(t)
	const deaf = `trap "" TERM; "$@" & wait`
	r, err := p.Start(t.Context(), t.TempDir(), Options{Addr: s.Addr}, "sh", "-c", deaf, "sh")
	if err != nil {
		t.Fatal(err)
	}
	r.endAfter = 100 * time.Millisecond
	if _, err := r.Stop(); err == nil || !strings.Contains(err.Error(), "did not end") {
		t.Error(err)
	}
	await.Until(t, "the child is reaped",
		func() bool { return errors.Is(syscall.Kill(-r.PIDs()[0], 0), syscall.ESRCH) })
}
