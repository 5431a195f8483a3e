package scenario

import (
	"context"
	"fmt"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/servers"
)

// cmdinfoOnceLock: go-redis v6 cannot parse the reply of Redis 6 to COMMAND, so it sends COMMAND again for each call,
// and does so under one lock. Doctor does not read the profiles of the application.
var cmdinfoOnceLock = Scenario{
	ID:     "cmdinfo-once-lock",
	Cause:  "cmdinfo-once-lock",
	Title:  "a go-redis v6 cluster client with 50 callers and a cluster of Redis 6.0",
	Server: servers.Redis6016,
	Fixes:  []string{"upgrade-library"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		c, err := l.Cluster(ctx, 3, 1, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		return Scene{Target: c.Nodes[0].Addr}, l.Client(ctx, ClientSpec{
			Program: l.upgraded(clients.GoRedis6),
			Options: clients.Options{
				Addresses: c.Addrs(), Mode: "cluster", Commands: mixedReads(), Keys: Documents, Workers: 50,
			},
		})
	},
}

// cmdinfoOnceLockProfile is the same in an HTTP service whose profiles doctor may read.
var cmdinfoOnceLockProfile = Scenario{
	ID:     "cmdinfo-once-lock-profile",
	Cause:  "cmdinfo-once-lock",
	Title:  "an HTTP service with go-redis v6 and a cluster of Redis 6.0, whose profiles doctor reads",
	Server: servers.Redis6016,
	Fixes:  []string{"upgrade-library"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		c, err := l.Cluster(ctx, 3, 1, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		p, err := l.ClientProcess(ctx, ClientSpec{Program: l.upgraded(clients.GoRedis6), Options: clients.Options{
			Addresses: c.Addrs(), Mode: "cluster", Commands: mixedReads(), Keys: Documents, Workers: 50,
			Listen: "127.0.0.1:0",
		}})
		if err != nil {
			return Scene{}, err
		}
		return Scene{Target: c.Nodes[0].Addr, Args: []string{"--pprof", p.Addr()}}, nil
	},
}

// ringLock is go-redis v8, which spreads keys over servers by itself (a ring). The servers are newer than it.
func ringLock(suffix string, server servers.Name, shards, workers int, rate float64) Scenario {
	calls := "as fast as they can"
	if rate > 0 {
		calls = fmt.Sprintf("%g times per second", rate)
	}
	return Scenario{
		ID:    "cmdinfo-once-lock-" + suffix,
		Cause: "cmdinfo-once-lock",
		Title: fmt.Sprintf("a go-redis v8 ring over %d servers (%s), %d callers that call %s", shards, server,
			workers, calls),
		Server: server,
		Fixes:  []string{"upgrade-library"},
		Make: func(ctx context.Context, l *Lab) (Scene, error) {
			var addrs []string
			for range shards {
				s, err := l.Start(ctx, fleet.Spec{})
				if err != nil {
					return Scene{}, err
				}
				addrs = append(addrs, s.Addr)
			}
			return Scene{Target: addrs[0]}, l.Client(ctx, ClientSpec{
				Program: l.upgraded(clients.GoRedis8),
				Options: clients.Options{
					Addresses: addrs, Mode: "ring", Commands: mixedReads(), Keys: Documents, Workers: workers,
					Rate: rate,
				},
			})
		},
	}
}

// upgraded is the program with go-redis v9, where the scenario is made with that.
func (l *Lab) upgraded(from clients.Name) clients.Name {
	if l.Fixed("upgrade-library") {
		return clients.GoRedis9
	}
	return from
}

var (
	cmdinfoOnceLockRing       = ringLock("ring", servers.Redis7015, 2, 20, 0)
	cmdinfoOnceLockRingValkey = ringLock("ring-valkey", servers.Valkey811, 3, 10, 100)
)
