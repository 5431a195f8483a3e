//go:build linux

package benching

import (
	"testing"

	"slowpath/internal/load/engine"
)

func TestBusyPollLeavesACPU(t *testing.T) {
	for _, c := range []struct {
		threads, connections, cpus int
		refused                    bool
	}{{1, 50, 2, false}, {2, 50, 2, true}, {4, 1, 2, false}, {1, 1, 1, true}, {3, 50, 4, false}} {
		f := Options{Load: engine.Options{BusyPoll: true, Threads: c.threads, Connections: c.connections}}
		if err := f.checkThreads(c.cpus); (err != nil) != c.refused {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
