package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// forkLatency starts a snapshot of 1.5 GB of memory every 600 ms; each fork copies the page tables. The child is killed
// at once, so that calls wait for the fork and not for the child's use of CPU and disk.
var forkLatency = Scenario{
	ID:    "fork-latency",
	Cause: "fork-latency",
	Title: "BGSAVE of 1.5 GB every 600 ms",
	Fixes: []string{"snapshot-on-replica"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, saves, err := l.startForSnapshots(ctx, fleet.Spec{Config: []string{"stop-writes-on-bgsave-error no"}})
		if err != nil {
			return Scene{}, err
		}
		if err := fillBig(ctx, s, "blob:", 1500, 1<<20); err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 1000, Command: traffic.Get(10_000)})
		if err := snapshots.On(ctx, l, &Stage{Server: saves}, Strength{"every_ms": 600}); err != nil {
			return Scene{}, err
		}
		return Scene{Target: s.Addr}, nil
	},
}

// endChildren kills the children that a server of the lab forked for snapshots.
func endChildren(pid int) error {
	body, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return err
	}
	for child := range strings.FieldsSeq(string(body)) {
		if p, err := strconv.Atoi(child); err == nil {
			_ = syscall.Kill(p, syscall.SIGKILL) // it may have ended by itself
		}
	}
	return nil
}

// snapshots forks again and again. The child is killed at once.
var snapshots = Fault{
	Name:  "fork-latency",
	Cause: "fork-latency",
	Also:  []string{"cow-faults-after-fork"}, // each fork is followed by writes
	Needs: Needs{Topologies: oneServer},
	Draw: func(r *rand.Rand) Strength {
		return Strength{"memory_mb": between(r, 20, 1200), "every_ms": between(r, 300, 600)}
	},
	Config: func(*Lab, Strength) []string { return []string{"stop-writes-on-bgsave-error no"} },
	Prepare: func(ctx context.Context, _ *Lab, st *Stage, s Strength) error {
		return fillBig(ctx, st.Server, "blob:", s.int("memory_mb"), 1<<20)
	},
	On: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		l.Every(ctx, s.millis("every_ms"), func(ctx context.Context) error {
			if _, err := st.Server.Do(ctx, "BGSAVE"); err != nil {
				return nil // refused: the server has not noticed yet that the last child has ended
			}
			return endChildren(st.Server.PID)
		})
		return nil
	},
}
