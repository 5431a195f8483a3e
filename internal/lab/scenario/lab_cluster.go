package scenario

import (
	"context"
	"fmt"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/servers"
	"slowpath/internal/wire/cluster"
)

// Cluster runs a cluster for the scenario, with a number of masters and of replicas for each.
func (l *Lab) Cluster(ctx context.Context, masters, replicas int, spec fleet.Spec) (*fleet.Cluster, error) {
	return l.clusterOf(ctx, l.Server, masters, replicas, spec)
}

// clusterOf is Cluster with another version of the server.
func (l *Lab) clusterOf(ctx context.Context, server servers.Name, masters, replicas int, spec fleet.Spec,
) (*fleet.Cluster, error) {
	bin, err := l.Cache.Get(ctx, server, l.Log)
	if err != nil {
		return nil, err
	}
	c, err := l.Fleet.StartCluster(ctx, bin, masters, replicas, spec)
	if err != nil {
		return nil, err
	}
	l.Defer(c.Stop)
	return c, nil
}

// Replicated starts a server with one replica.
func (l *Lab) Replicated(ctx context.Context, spec fleet.Spec) (*fleet.Instance, error) {
	master, _, err := l.withReplica(ctx, spec)
	return master, err
}

// withReplica starts a server and its replica.
func (l *Lab) withReplica(ctx context.Context, spec fleet.Spec) (master, replica *fleet.Instance, err error) {
	bin, err := l.Cache.Get(ctx, l.Server, l.Log)
	if err != nil {
		return nil, nil, err
	}
	all, err := l.Fleet.StartReplicated(ctx, bin, 1, spec)
	if err != nil {
		return nil, nil, err
	}
	for _, i := range all {
		l.Defer(i.Stop)
	}
	return all[0], all[1], nil
}

// nodeTimeout is the cluster-node-timeout of clusters of the lab, in milliseconds: a failover takes about a second
// longer. The default is 15 s.
const nodeTimeout = 3000

// noFailover lets nodes that are busy for seconds keep their slots.
const noFailover = "cluster-node-timeout 60000"

// cacheCluster is three masters with a replica each.
func (l *Lab) cacheCluster(ctx context.Context, config ...string) (*fleet.Cluster, error) {
	return l.Cluster(ctx, 3, 1, fleet.Spec{Config: append([]string{"cluster-node-timeout " + itoa(nodeTimeout)},
		config...)})
}

// callersOfCluster starts a cacheCluster and a client that reads and writes keys of all masters.
func (l *Lab) callersOfCluster(ctx context.Context, library clients.Name, o clients.Options) (*fleet.Cluster, error) {
	c, err := l.cacheCluster(ctx)
	if err != nil {
		return nil, err
	}
	o.Addresses, o.Mode, o.Commands, o.Keys = c.Addrs(), "cluster", readsAndWrites(), Documents
	return c, l.Client(ctx, ClientSpec{Program: library, CPU: otherCPU(), Options: o})
}

// tagOf returns a hash tag whose slot a node has.
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
	if n, ok := m.Myself(); ok && len(n.Ranges) > 0 {
		return "{" + cluster.TagForSlot(n.Ranges[0].From) + "}", nil
	}
	return "", fmt.Errorf("%s has no slots", node.Addr)
}

// keyOfSlot puts a key into a slot by a hash tag.
func keyOfSlot(slot uint16, key string) string { return "{" + cluster.TagForSlot(slot) + "}" + key }

// readsOfSlot are GETs of documents in one slot.
func readsOfSlot(slot uint16) []clients.Command {
	return []clients.Command{{Args: []string{"GET", keyOfSlot(slot, "doc:{n}")}}}
}
