package scenario

import (
	"context"
	"fmt"
	"strings"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
)

// replicaLoading restarts a replica with a large data set again and again. Each time it loads its file, and refuses
// reads with CLUSTERDOWN: while it loads it does not communicate with the cluster.
var replicaLoading = Scenario{
	ID:    "replica-loading-or-readonly-routing",
	Cause: "replica-loading-or-readonly-routing",
	Fixes: []string{"avoid-unready-node"},
	Title: "redis-py reads from replicas, one of which restarts again and again and loads five million keys",
	Watch: 20 * time.Second,
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		c, err := l.cacheCluster(ctx, noFailover)
		if err != nil {
			return Scene{}, err
		}
		tag, err := tagOf(ctx, c.Nodes[0])
		if err != nil {
			return Scene{}, err
		}
		if err := evalSteps(ctx, c.Nodes[0], "for i=ARGV[1],ARGV[2] do redis.call('SET',ARGV[3]..i,'x') end", 5_000_000,
			tag); err != nil {
			return Scene{}, err
		}
		if err := save(ctx, c.Nodes[c.Masters]); err != nil { // it loads this file when it starts
			return Scene{}, err
		}
		if err := l.Client(ctx, ClientSpec{
			Program: clients.RedisPy, CPU: otherCPU(),
			Options: clients.Options{
				Addresses: c.Addrs(), Mode: "cluster", ReadReplicas: !l.Fixed("avoid-unready-node"),
				Commands: []clients.Command{
					{Args: []string{"GET", tag + "{n}"}, Weight: 2},
					{Args: []string{"GET", "doc:{n}"}},
				}, Keys: Documents, Workers: 10, Rate: 400,
			},
		}); err != nil {
			return Scene{}, err
		}
		l.onceAfter(ctx, beforeFault, func(ctx context.Context) error {
			for {
				if err := l.reload(ctx, c.Nodes[c.Masters]); err != nil || !pause(ctx, time.Second) {
					return err
				}
			}
		})
		return Scene{Target: c.Nodes[1].Addr}, nil
	},
}

// save lets a server write its data to the disk and waits for it. It uses BGSAVE, since the reply to SAVE may take
// longer than the timeout of Do.
func save(ctx context.Context, s *fleet.Instance) error {
	if _, err := s.Do(ctx, "BGSAVE"); err != nil {
		return err
	}
	for {
		if v, err := s.Do(ctx, "INFO", "persistence"); err == nil && strings.Contains(fmt.Sprint(v),
			"rdb_bgsave_in_progress:0") {
			if !strings.Contains(fmt.Sprint(v), "rdb_last_bgsave_status:ok") {
				return fmt.Errorf("BGSAVE of %s failed: see its log", s.Addr)
			}
			return nil
		}
		if !pause(ctx, 200*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// reload restarts a replica, and waits until it has its data.
func (l *Lab) reload(ctx context.Context, replica *fleet.Instance) error {
	if err := replica.Kill(ctx); err != nil {
		return err
	}
	if err := replica.Restart(ctx); err != nil {
		return err
	}
	for begin := time.Now(); ; {
		if v, err := replica.Do(ctx, "INFO"); err == nil && strings.Contains(fmt.Sprint(v), "loading:0") &&
			strings.Contains(fmt.Sprint(v), "master_link_status:up") {
			l.Logf("%s had its data after %v", replica.Addr, time.Since(begin).Round(time.Millisecond))
			return nil
		}
		if !pause(ctx, 200*time.Millisecond) {
			return ctx.Err()
		}
	}
}

// replicaReadOnly has a client with the address of a server that became a replica at the last failover.
var replicaReadOnly = Scenario{
	ID:    "replica-loading-or-readonly-routing-ro",
	Cause: "replica-loading-or-readonly-routing",
	Fixes: []string{"write-to-master"},
	Title: "a go-redis client with the address of the former master, which is a replica now",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		master, replica, err := l.masterAndReplica(ctx)
		if err != nil {
			return Scene{}, err
		}
		asked := replica.Addr
		if l.Fixed("write-to-master") { // its address differs from the printed one: the servers are new
			asked = master.Addr
		}
		return Scene{Target: replica.Addr}, l.Client(ctx, ClientSpec{
			Program: clients.GoRedis9, CPU: otherCPU(),
			Options: clients.Options{
				Addresses: []string{asked},
				Commands:  readsAndWrites(), Keys: Documents, Workers: 20, Rate: 300, Random: true,
			},
		})
	},
}

// replicaMasterDown reads from a replica that must not serve stale data, and whose master is unreachable.
var replicaMasterDown = Scenario{
	ID:    "replica-loading-or-readonly-routing-down",
	Cause: "replica-loading-or-readonly-routing",
	Fixes: []string{"serve-stale-data"},
	Title: "redis-py reads from a replica with replica-serve-stale-data no, whose master is unreachable",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		_, replica, err := l.masterAndReplica(ctx, "replica-serve-stale-data no")
		if err != nil {
			return Scene{}, err
		}
		if err := l.Client(ctx, ClientSpec{
			Program: clients.RedisPy, CPU: otherCPU(),
			Options: clients.Options{
				Addresses: []string{replica.Addr},
				Commands:  smallReads(), Keys: Documents, Workers: 10, Rate: 200,
			},
		}); err != nil {
			return Scene{}, err
		}
		_, err = replica.Do(ctx, "REPLICAOF", "127.0.0.1", "1") // nobody listens there
		return Scene{Target: replica.Addr}, err
	},
}

// masterAndReplica starts a master and its replica.
func (l *Lab) masterAndReplica(ctx context.Context, config ...string) (master, replica *fleet.Instance, err error) {
	bin, err := l.Cache.Get(ctx, l.Server, l.Log)
	if err != nil {
		return nil, nil, err
	}
	all, err := l.Fleet.StartReplicated(ctx, bin, 1, fleet.Spec{Config: config})
	if err != nil {
		return nil, nil, err
	}
	for _, one := range all {
		l.Defer(one.Stop)
	}
	return all[0], all[1], nil
}
