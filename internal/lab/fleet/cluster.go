package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"slowpath/internal/lab/servers"
)

// Slots is the number of hash slots of a cluster.
const Slots = 16384

// Cluster is a cluster that runs. Nodes holds the masters first, then the replicas; the replica at Nodes[Masters+k]
// belongs to the master at Nodes[k%Masters].
type Cluster struct {
	Nodes   []*Instance
	Masters int
}

// startsAtOnce bounds how many servers start at a time.
const startsAtOnce = 4

// StartCluster starts masters × (1 + replicas) nodes, makes them a cluster with all slots served, and waits until every
// node says cluster_state:ok and every replica is in sync. replicas is per master. Without a deadline in ctx it waits
// 90 s. On error nothing is left. With spec.Port the nodes have that port and the next ones; before the first one
// starts, these and their bus ports must be free, else the error is ErrPort.
func (f *Fleet) StartCluster(ctx context.Context, bin servers.Binary, masters, replicas int, spec Spec) (*Cluster,
	error,
) {
	if masters < 1 || masters > Slots || replicas < 0 {
		return nil, fmt.Errorf("starting a cluster of %s: wanted at least one master, and no negative replicas",
			bin.Name)
	}
	ctx, cancel := withDefaultTimeout(ctx, clusterTimeout)
	defer cancel()
	spec.cluster = true
	c := &Cluster{Masters: masters}
	err := f.startNodes(ctx, bin, c, masters*(1+replicas), spec)
	if err == nil {
		err = c.form(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting a cluster of %s: %w", bin.Name, err),
			c.Stop(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (f *Fleet) startNodes(ctx context.Context, bin servers.Binary, c *Cluster, n int, spec Spec) error {
	g := newGroup()
	if spec.TLS { // made before the nodes start concurrently
		if _, err := g.certificates(spec); err != nil {
			return err
		}
	}
	ports, err := clusterPorts(spec, n)
	if err != nil {
		return err
	}
	nodes, errs := make([]*Instance, n), make([]error, n)
	gate := make(chan struct{}, startsAtOnce)
	var wg sync.WaitGroup
	for k := range n {
		role := "master"
		if k >= c.Masters {
			role = "replica"
		}
		own := spec
		own.Port = ports[k]
		gate <- struct{}{}
		wg.Go(func() {
			nodes[k], errs[k] = f.start(ctx, bin, own, g, role)
			<-gate
		})
	}
	wg.Wait()
	c.Nodes = slices.DeleteFunc(nodes, func(i *Instance) bool { return i == nil })
	return errors.Join(errs...)
}

// Stop stops all nodes.
func (c *Cluster) Stop(ctx context.Context) error {
	errs := make([]error, len(c.Nodes))
	var wg sync.WaitGroup
	for k, node := range c.Nodes {
		wg.Go(func() { errs[k] = node.Stop(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Addrs are the addresses of all nodes, masters first.
func (c *Cluster) Addrs() []string {
	out := make([]string, len(c.Nodes))
	for k, node := range c.Nodes {
		out[k] = node.Addr
	}
	return out
}
