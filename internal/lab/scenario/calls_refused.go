package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// callsRefused takes a permission from the user of an application during the watch: a part of its calls gets NOPERM.
var callsRefused = Scenario{
	ID:    "calls-refused",
	Cause: "calls-refused",
	Fixes: []string{"grant-command"},
	Title: "ACL SETUSER takes SET from the application's user during the watch: NOPERM",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.loadedServer(ctx)
		if err != nil {
			return Scene{}, err
		}
		l.onceAfter(ctx, afterStart, func(ctx context.Context) error {
			_, err := s.Do(ctx, "ACL", "SETUSER", "default", "-set")
			return err
		})
		return Scene{Target: s.Addr}, nil
	},
}

// callsRefusedFull has a server that is full and may not evict.
var callsRefusedFull = Scenario{
	ID:    "calls-refused-full",
	Cause: "calls-refused",
	Fixes: []string{"more-memory", "evict-keys"},
	Title: "maxmemory is reached with noeviction: writes get OOM",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.loadedServer(ctx)
		if err != nil {
			return Scene{}, err
		}
		_, err = s.Do(ctx, "CONFIG", "SET", "maxmemory", "500000") // less than an empty server uses
		return Scene{Target: s.Addr}, err
	},
}

// callsRefusedNoSlots has a cluster of one node that was never given its slots.
var callsRefusedNoSlots = Scenario{
	ID:    "calls-refused-no-slots",
	Cause: "calls-refused",
	Fixes: []string{"assign-slots"},
	Title: "a node in cluster mode that has no slots: CLUSTERDOWN",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.loadedServer(ctx, "cluster-enabled yes")
		if err != nil {
			return Scene{}, err
		}
		return Scene{Target: s.Addr}, nil
	},
}

// callsRefusedTwoDead kills two of four masters without replicas: the others call them failed, and refuse all calls.
var callsRefusedTwoDead = Scenario{
	ID:    "calls-refused-two-dead",
	Cause: "calls-refused",
	Title: "two of the four masters of a cluster died before doctor starts: CLUSTERDOWN",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		c, err := l.Cluster(ctx, 4, 0, fleet.Spec{Config: []string{"cluster-node-timeout " + itoa(nodeTimeout)}})
		if err != nil {
			return Scene{}, err
		}
		tag, err := tagOf(ctx, c.Nodes[0])
		if err != nil {
			return Scene{}, err
		}
		get := func(r *rand.Rand, _ int) []string { return []string{"GET", tag + itoa(r.IntN(1000))} }
		l.Load(ctx, traffic.Spec{Addr: c.Nodes[0].Addr, Conns: 4, Rate: 200, Command: get})
		for _, dead := range c.Nodes[2:] {
			if err := dead.Kill(ctx); err != nil {
				return Scene{}, err
			}
		}
		return Scene{Target: c.Nodes[0].Addr}, l.awaitClusterDown(ctx, c.Nodes[0])
	},
}

// awaitClusterDown waits until a node says that its cluster is down, and logs how long that took.
func (l *Lab) awaitClusterDown(ctx context.Context, node *fleet.Instance) error {
	ctx, cancel := context.WithTimeout(ctx, failoverTimeout)
	defer cancel()
	for begin := time.Now(); ; {
		v, err := node.Do(ctx, "CLUSTER", "INFO")
		if err == nil && strings.Contains(fmt.Sprint(v), "cluster_state:fail") {
			l.Logf("%s says cluster_state:fail after %v", node.Addr, time.Since(begin).Round(time.Millisecond))
			return nil
		}
		if !pause(ctx, 200*time.Millisecond) {
			return fmt.Errorf("the cluster of %s did not go down: %w", node.Addr, ctx.Err())
		}
	}
}

// fullMemory lets the server refuse writes for a while, again and again: its memory is full.
var fullMemory = Fault{
	Name:  "calls-refused",
	Cause: "calls-refused",
	Needs: Needs{Topologies: oneServer, Callers: writers, Alone: []Alone{maxMemory}},
	Draw:  drawPulses,
	On: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		l.pulses(ctx, st, s, "maxmemory", "500000", "0")
		return nil
	},
}
