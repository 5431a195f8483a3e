package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/clients/programs/protocol"
	"slowpath/internal/lab/fault"
	"slowpath/internal/lab/fleet"
)

// fanoutPipeline reads keys of all nodes in one pipeline, which takes as long as the slowest node.
var fanoutPipeline = Scenario{
	ID:    "fanout-slowest-shard",
	Cause: "fanout-slowest-shard",
	By:    "server-cfs-throttled",
	Title: "pipelines of go-redis v9 over six masters, one of which its CPU quota throttles",
	Fixes: []string{"cure-slow-node"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.throttledShard(ctx, 6, ClientSpec{Program: clients.GoRedis9, Options: clients.Options{
			Commands: []clients.Command{{Args: []string{"GET", "doc:{n}"}}}, Pipeline: 48, Workers: 8, PoolSize: 8,
			Rate: 400, Random: true,
		}})
	},
}

// fanoutMGET has a library that splits one command over the nodes.
var fanoutMGET = Scenario{
	ID:    "fanout-slowest-shard-mget",
	Cause: "fanout-slowest-shard",
	By:    "server-cfs-throttled",
	Title: "rueidis.MGet of 48 keys over three masters, one of which its CPU quota throttles",
	Fixes: []string{"cure-slow-node"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.throttledShard(ctx, 3, ClientSpec{Program: clients.Rueidis, Options: clients.Options{
			Commands: []clients.Command{{Args: mget(48, "doc:{n}")}}, Workers: 8, Rate: 400, Random: true,
		}})
	},
}

// fanoutProxy has a proxy that splits the command; its clients see one server.
var fanoutProxy = Scenario{
	ID:    "fanout-slowest-shard-twemproxy",
	Cause: "fanout-slowest-shard",
	By:    "server-cfs-throttled",
	Title: "MGET of 48 keys through twemproxy over four servers, one of which its CPU quota throttles",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		var shards []*fleet.Instance
		for range 4 {
			s, err := l.Start(ctx, fleet.Spec{})
			if err != nil {
				return Scene{}, err
			}
			shards = append(shards, s)
		}
		proxy, err := l.Fleet.StartTwemproxy(ctx, shards...)
		if errors.Is(err, fleet.ErrNoProxy) {
			return Scene{}, fmt.Errorf("%w: %w", fault.ErrCannot, err)
		}
		if err != nil {
			return Scene{}, err
		}
		l.Defer(proxy.Stop)
		if err := l.throttle(ctx, shards[2]); err != nil {
			return Scene{}, err
		}
		scene := Scene{Target: shards[0].Addr}
		for _, s := range shards[1:] {
			scene.Args = append(scene.Args, s.Addr)
		}
		return scene, l.Client(ctx, ClientSpec{
			Program: clients.Redigo,
			Options: clients.Options{
				Addresses: []string{proxy.Addr},
				Commands:  []clients.Command{{Args: mget(48, "{n}:profile")}}, Keys: Documents, Workers: 8, PoolSize: 8,
				Rate: 400, Random: true,
			},
		})
	},
}

// throttledShard starts a cluster of masters, one of which is throttled, and a client.
func (l *Lab) throttledShard(ctx context.Context, masters int, s ClientSpec) (Scene, error) {
	c, err := l.Cluster(ctx, masters, 0, fleet.Spec{})
	if err != nil {
		return Scene{}, err
	}
	if err := l.throttle(ctx, c.Nodes[masters-1]); err != nil {
		return Scene{}, err
	}
	s.Options.Addresses, s.Options.Mode, s.Options.Keys = c.Addrs(), protocol.Cluster, Documents
	return Scene{Target: c.Nodes[0].Addr}, l.Client(ctx, s)
}

// throttle gives a running server a CPU quota of 1 % of a core. Its load needs more.
func (l *Lab) throttle(ctx context.Context, s *fleet.Instance) error {
	g, err := fault.CPUCgroup(l, "shard", time.Millisecond)
	if err != nil {
		return err
	}
	return g.Add(s.PID)
}

// mget is an MGET of a number of random keys.
func mget(keys int, name string) []string {
	return append([]string{"MGET"}, slices.Repeat([]string{name}, keys)...)
}
