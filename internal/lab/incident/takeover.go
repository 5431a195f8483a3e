package incident

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/wire/cluster"
)

// nodeTimeout is the cluster-node-timeout of the lab, in milliseconds: a failover takes about as long and a second
// more. The default is 15 s.
const nodeTimeout = 3000

// noFailover makes nodes that are busy for seconds keep their slots.
const noFailover = "cluster-node-timeout 60000"

// cacheCluster is three masters with a replica each.
func (l *Lab) cacheCluster(ctx context.Context, config ...string) (*fleet.Cluster, error) {
	return l.Cluster(ctx, 3, 1, fleet.Spec{Config: append([]string{"cluster-node-timeout " + itoa(nodeTimeout)},
		config...)})
}

// after does something once, so long from now; its error goes to the log.
func (l *Lab) after(ctx context.Context, wait time.Duration, action func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if !pause(ctx, wait) {
			return
		}
		if err := action(ctx); err != nil && ctx.Err() == nil {
			fmt.Fprintf(l.Log, "incident: %v\n", err)
		}
	}()
	l.Defer(func(context.Context) error { cancel(); <-done; return nil })
}

// stop holds a server's process until the incident ends: its kernel still accepts connections and acknowledges data.
func (l *Lab) stop(s *fleet.Instance) error {
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

// takeoverPatience bounds the wait for an election: cluster-node-timeout, 0.5 to 1 s of delay, the votes, and again if
// they fail.
const takeoverPatience = time.Minute

// awaitTakeover waits until a replica says that it is a master now, and logs how long that took: the truth of the
// incident does not rest on the tool that it grades.
func (l *Lab) awaitTakeover(ctx context.Context, replica *fleet.Instance) error {
	ctx, cancel := context.WithTimeout(ctx, takeoverPatience)
	defer cancel()
	for begin := time.Now(); ; {
		if v, err := replica.Do(ctx, "ROLE"); err == nil {
			if role, ok := v.([]any); ok && len(role) > 0 && role[0] == "master" {
				fmt.Fprintf(l.Log, "%s has taken over after %v\n", replica.Addr,
					time.Since(begin).Round(time.Millisecond))
				return nil
			}
		}
		if !pause(ctx, 500*time.Millisecond) {
			return fmt.Errorf("%s has not taken over: %w", replica.Addr, ctx.Err())
		}
	}
}

// tagOf is a hash tag whose slot a node has.
func tagOf(ctx context.Context, node *fleet.Instance) (string, error) {
	v, err := node.Do(ctx, "CLUSTER", "NODES")
	if err != nil {
		return "", err
	}
	text, _ := v.(string)
	m, err := cluster.ParseNodes(text)
	if err != nil {
		return "", err
	}
	for _, n := range m.Nodes {
		if n.HasFlag("myself") && len(n.Ranges) > 0 {
			return "{" + cluster.TagForSlot(n.Ranges[0].From) + "}", nil
		}
	}
	return "", fmt.Errorf("%s has no slots", node.Addr)
}
