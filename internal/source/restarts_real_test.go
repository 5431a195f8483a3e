//go:build linux

package source

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/recording"
	"slowpath/internal/wire/target"
)

// restartCounter is a sink that counts the processes that were found after a restart.
type restartCounter struct{ found atomic.Int64 }

func (c *restartCounter) Event(e recording.Event) {
	if e.Kind == recording.KindProcessFound {
		c.found.Add(1)
	}
}

func (*restartCounter) Call(recording.Call, ...recording.Segment) {}
func (*restartCounter) Histogram(recording.Histogram)             {}
func (*restartCounter) Sample(recording.Sample)                   {}
func (*restartCounter) ConnUse(string, recording.ConnUse)         {}
func (*restartCounter) Snapshot(recording.Snapshot)               {}
func (*restartCounter) SetMeta(string, string)                    {}
func (*restartCounter) Profile(recording.Profile)                 {}

// TestRestartsKeepNoFiles: a whole watch has as many files open after restarts of its server as before.
func TestRestartsKeepNoFiles(t *testing.T) {
	needs.Real(t, needs.Root, needs.BPF, needs.RedisServer)
	testRestarts(t, 3)
}

// testRestarts fails where a file per restart stays open, of three restarts and more. Two may be on their way.
func testRestarts(t *testing.T, restarts int) {
	t.Helper()
	open := func() int {
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(fds)
	}
	i := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	to, err := target.Parse(i.Addr)
	if err != nil {
		t.Fatal(err)
	}
	sink := &restartCounter{}
	ctx, end := context.WithCancel(t.Context())
	began, ended := make(chan int, 1), make(chan error, 1)
	o := Options{Targets: []target.Target{to}, NoProbe: true, Started: func(nodes int) { began <- nodes }}
	go func() { ended <- Run(ctx, o, sink) }()
	select {
	case <-began:
	case err := <-ended:
		t.Fatal(err)
	}
	restart := func(n int) {
		t.Helper()
		if err := i.Kill(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := i.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		await.Until(t, "its process is found", func() bool { return sink.found.Load() == int64(n) })
		await.Pass(300 * time.Millisecond) // in which the tap hooks it; one that it does not hook leaves nothing open
	}
	restart(1) // all sources run by then, and have open what they need
	before := open()
	for n := range restarts {
		restart(n + 2)
	}
	await.UntilOr(t, func() bool { return open() < before+3 }, func() string {
		return fmt.Sprintf("%d files open, %d before %d restarts", open(), before, restarts)
	})
	t.Logf("%d files open, %d before %d restarts", open(), before, restarts)
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
