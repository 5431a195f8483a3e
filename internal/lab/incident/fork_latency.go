package incident

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// forkLatency starts a snapshot of 1.5 GB of memory every 600 ms; each fork copies the page tables. The child is killed
// at once, so that calls wait for the fork and not for the child's use of CPU and disk.
var forkLatency = Incident{
	ID:    "fork-latency",
	Cause: "fork-latency",
	Title: "BGSAVE of 1.5 GB every 600 ms",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{Config: []string{"stop-writes-on-bgsave-error no"}})
		if err != nil {
			return Scene{}, err
		}
		if err := fillBig(ctx, s, "blob:", 1500, 1<<20); err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 1000, Command: traffic.Get(10_000)})
		l.Every(ctx, 600*time.Millisecond, func(ctx context.Context) error {
			if _, err := s.Do(ctx, "BGSAVE"); err != nil {
				return nil // refused: the server has not noticed yet that the last child has ended
			}
			return endChildren(s.PID)
		})
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
