package engine

import (
	"testing"
	"time"

	"slowpath/internal/clock"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/load/workload"
	"slowpath/internal/wire/target"
)

// to is the target of a server.
func to(i *fleet.Instance) target.Target {
	t := target.Target{Network: "tcp", Host: "127.0.0.1", Port: i.Port}
	if i.TLS {
		t.TLS = &target.TLSOptions{CACert: i.CACert}
	}
	return t
}

// simple is a workload of one command with a thousand keys.
func simple(t *testing.T, command string, valueBytes int) *workload.Workload {
	t.Helper()
	return compiled(t, command, 999, valueBytes)
}

func compiled(t *testing.T, command string, lastKey uint64, valueBytes int) *workload.Workload {
	t.Helper()
	w, err := workload.Compile(workload.Options{
		Commands: []string{command}, Keys: workload.Keys{High: lastKey},
		Sizes: workload.FixedSize(valueBytes),
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// options are those of a small closed loop; the test changes what it is about.
func options(t *testing.T, to target.Target) Options {
	t.Helper()
	return Options{
		Target: to, Clock: clock.New(), Workload: simple(t, "get", 3), Connections: 4, Pipeline: 2,
		Threads: 2, Requests: 2000,
		Arrivals: Uniform, Drain: 10 * time.Second,
	}
}
