package random

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/scenario"
	"slowpath/internal/lab/servers"
)

// wayFor is a way to make a fault: with callers of this process, or else with a program that starts soon.
func wayFor(f scenario.Fault) way {
	kinds := []scenario.Fault{f}
	if other, ok := scenario.FindFault(f.Needs.With); ok {
		kinds = append(kinds, other)
	}
	all := ways(kinds, []servers.Name{servers.Redis7015})
	if len(all) == 0 {
		all = ways(kinds, servers.Known())
	}
	for _, program := range []clients.Name{scenario.SharedConn, clients.GoRedis9} {
		if i := slices.IndexFunc(all, func(w way) bool { return w.program == program }); i >= 0 {
			return all[i]
		}
	}
	return all[0]
}

// TestFaultsSwitch makes each fault on a real server and switches it on, off and on while callers run: they go on, and
// nothing is left at the end.
func TestFaultsSwitch(t *testing.T) {
	needs.Long(t, needs.Root, needs.RedisServer)
	for _, f := range scenario.Faults() {
		t.Run(f.Name, func(t *testing.T) {
			t.Setenv("XDG_STATE_HOME", t.TempDir())
			w := wayFor(f)
			s := Drawn{
				Server: w.server, Topology: w.topology,
				Callers: []Caller{{Program: w.program, Workers: 2, PerSecond: 50, Reads: 1, Items: 1}},
				Faults:  []Fault{{f.Name, f.Cause, f.Draw(rand.New(rand.NewPCG(2, 2)))}},
			}
			var log bytes.Buffer
			l, err := scenario.New(s.Server, &log)
			if err != nil {
				t.Fatal(err)
			}
			operations, err := switched(t.Context(), l, s)
			if closing := l.Close(context.WithoutCancel(t.Context())); closing != nil {
				t.Error(closing)
			}
			if left, err := l.Registry.Entries(); err != nil || len(left) > 0 {
				t.Errorf("left in the registry: %v, %v", left, err)
			}
			switch {
			case errors.Is(err, fault.ErrCannot), errors.Is(err, servers.ErrRegistry), errors.Is(err, servers.ErrTool):
				t.Skip(err)
			case err != nil:
				t.Fatalf("%v; %s", err, &log)
			case operations == 0:
				t.Errorf("no operations; %s", &log)
			}
			t.Logf("%v: %d operations; %s", s.Faults[0], operations, &log)
		})
	}
}

// switched makes a drawn scenario and switches its fault. It returns how many operations were due.
func switched(ctx context.Context, l *scenario.Lab, s Drawn) (operations int64, err error) {
	st, err := build(ctx, l, s)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	for _, mask := range []int{1, 0, 1, 0} {
		if err := st.set(ctx, mask); err != nil {
			return 0, err
		}
		if err := wait(ctx, 150*time.Millisecond); err != nil {
			return 0, err
		}
	}
	all := []Trial{{StartNs: begin.UnixNano() - int64(settling), EndNs: time.Now().UnixNano()}}
	if err := st.measure(all, &Trial{}); err != nil {
		return 0, err
	}
	return all[0].Operations, nil
}
