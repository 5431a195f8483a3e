package scenario

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"slowpath/internal/lab/fleet"
)

// beforeFault is how long callers run before the fault: doctor needs a second or two to start.
const beforeFault = 5 * time.Second

// freeze stops the process of a server until the scenario ends. Its kernel still accepts connections and acknowledges
// data.
func (l *Lab) freeze(s *fleet.Instance) error {
	l.Defer(func(context.Context) error {
		if err := syscall.Kill(s.PID, syscall.SIGCONT); !errors.Is(err, syscall.ESRCH) {
			return err
		}
		return nil
	})
	if err := syscall.Kill(s.PID, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stopping %d: %w", s.PID, err)
	}
	return nil
}

// failoverTimeout bounds the wait for an election: cluster-node-timeout, a delay of 0.5 to 1 s, the votes, and all of
// it again if they fail.
const failoverTimeout = time.Minute

// restartReplaced lets the first replica of a cluster take over the slots of its master, and then kills the old master
// and starts it again, as a planned restart does.
func (l *Lab) restartReplaced(ctx context.Context, c *fleet.Cluster) error {
	if _, err := c.Nodes[c.Masters].Do(ctx, "CLUSTER", "FAILOVER"); err != nil {
		return err
	}
	if err := l.awaitFailover(ctx, c.Nodes[c.Masters]); err != nil {
		return err
	}
	if err := c.Nodes[0].Kill(ctx); err != nil {
		return err
	}
	return c.Nodes[0].Restart(ctx)
}

// awaitFailover waits until a replica says that it is a master, and logs how long that took: the truth of the scenario
// must not rest on the tool that is graded by it.
func (l *Lab) awaitFailover(ctx context.Context, replica *fleet.Instance) error {
	ctx, cancel := context.WithTimeout(ctx, failoverTimeout)
	defer cancel()
	for begin := time.Now(); ; {
		if v, err := replica.Do(ctx, "ROLE"); err == nil {
			if role, ok := v.([]any); ok && len(role) > 0 && role[0] == "master" {
				l.Logf("%s became a master after %v", replica.Addr, time.Since(begin).Round(time.Millisecond))
				return nil
			}
		}
		if !pause(ctx, 500*time.Millisecond) {
			return fmt.Errorf("%s did not become a master: %w", replica.Addr, ctx.Err())
		}
	}
}
