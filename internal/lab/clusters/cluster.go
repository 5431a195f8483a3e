// Package clusters changes clusters that `lab up` has started, while they serve calls: it adds and removes nodes, moves
// slots, and has replicas take over. A change that was broken off leaves a cluster that serves all slots, except for a
// slot whose keys were being moved; the next change ends that move first.
package clusters

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/step"
	"slowpath/internal/wire/cluster"
)

// Misuse is an error of the one who asked: what is wanted cannot be done with this cluster.
type Misuse struct{ error }

func (m Misuse) Unwrap() error { return m.error }

func misuse(format string, args ...any) error { return Misuse{fmt.Errorf(format, args...)} }

// ErrStopped says that the context ended before a change was complete, and what that left.
var ErrStopped = errors.New("stopped")

// Cluster is a cluster that runs. Only one process can have it open.
type Cluster struct {
	Note func(string) // is told what takes long, and what was found and repaired; nil: nobody

	fleet  *fleet.Fleet
	name   string
	nodes  []*node           // that run and answer
	ended  []*fleet.Instance // whose process has ended
	unlock func()
}

// node is a node that runs.
type node struct {
	*fleet.Instance
	conn *fleet.Conn
	id   string
	view cluster.Map // its own
}

// How long is waited: for all nodes to have the same map, for an answer, and between two attempts. Gossip takes up to
// half of cluster-node-timeout (15 s unless it is set).
const (
	settleTimeout = time.Minute
	answerTimeout = 20 * time.Second // of a node whose process runs
	look          = 50 * time.Millisecond
)

// Open connects to the nodes of the cluster of a name of `lab up`. The error is Misuse where there is none.
func Open(ctx context.Context, f *fleet.Fleet, name string) (c *Cluster, err error) {
	all, err := f.ClusterOf(name)
	if errors.Is(err, fleet.ErrNoCluster) || errors.Is(err, fleet.ErrClusters) {
		return nil, Misuse{err}
	}
	if err != nil {
		return nil, err
	}
	c = &Cluster{fleet: f, name: name, Note: func(string) {}}
	if c.unlock, err = f.Registry.Lock(name); err != nil {
		return nil, err
	}
	for _, i := range all {
		if !i.Running() {
			c.ended = append(c.ended, i)
			continue
		}
		if _, err := c.connect(ctx, i); err != nil {
			c.Close()
			return nil, fmt.Errorf("%w; let it answer again, or stop the cluster: slowpath lab down %s", err, name)
		}
	}
	if len(c.nodes) == 0 {
		c.Close()
		return nil, misuse("no node of the cluster %q runs; start it again: slowpath lab down %[1]s, then lab up", name)
	}
	return c, nil
}

// Close ends the connections.
func (c *Cluster) Close() {
	for _, n := range c.nodes {
		n.conn.Close()
	}
	c.unlock()
}

// Like is a node of the cluster: of its program others can be started.
func (c *Cluster) Like() *fleet.Instance { return c.nodes[0].Instance }

func (c *Cluster) connect(ctx context.Context, i *fleet.Instance) (*node, error) {
	conn, err := i.Connect(ctx)
	if err != nil {
		return nil, err
	}
	n := &node{Instance: i, conn: conn}
	if n.id, err = n.text(ctx, "CLUSTER", "MYID"); err != nil {
		conn.Close()
		return nil, err
	}
	c.nodes = append(c.nodes, n)
	return n, nil
}

// remove forgets a node whose process ends.
func (c *Cluster) remove(n *node) {
	n.conn.Close()
	c.nodes = slices.DeleteFunc(c.nodes, func(m *node) bool { return m == n })
}

// do sends a command that a server answers at once, and that can be sent twice. Valkey 8.1 answers nothing for 5 s in a
// replica whose master lost its last slot ("state machine error" in its log), and closes connections.
func (n *node) do(ctx context.Context, args ...string) (reply any, err error) {
	end := time.Now().Add(answerTimeout)
	err = poll(ctx, func() (bool, error) {
		reply, err = n.conn.Do(ctx, 0, args...)
		if err == nil || fleet.Refused(err, "") || !n.Running() || time.Now().After(end) {
			return true, err
		}
		if again, err := n.Connect(ctx); err == nil {
			n.conn.Close()
			n.conn = again
		}
		return false, nil
	})
	return reply, err
}

func (n *node) text(ctx context.Context, args ...string) (string, error) {
	reply, err := n.do(ctx, args...)
	s, _ := reply.(string)
	return s, err
}

// self is the node in its own view.
func (n *node) self() cluster.Node {
	for _, m := range n.view.Nodes {
		if m.ID == n.id {
			return m
		}
	}
	return cluster.Node{ID: n.id}
}

// look reads the views of all nodes.
func (c *Cluster) look(ctx context.Context) error {
	for _, n := range c.nodes {
		text, err := n.text(ctx, "CLUSTER", "NODES")
		if err != nil {
			return err
		}
		if n.view, err = cluster.ParseNodes(text); err != nil {
			return fmt.Errorf("the map of %s: %w", n.Addr, err)
		}
		n.view.FillHosts("127.0.0.1")
	}
	return nil
}

// settle waits until all nodes have the same map: the same nodes in the same roles, and the same owner of each slot.
func (c *Cluster) settle(ctx context.Context) error {
	step.Say(ctx, "waiting until all nodes have the same map")
	end := time.Now().Add(settleTimeout)
	return poll(ctx, func() (bool, error) {
		if err := c.look(ctx); err != nil {
			return false, err
		}
		differs := c.difference()
		if differs != "" && time.Now().After(end) {
			return false, fmt.Errorf("after %v %s; see: slowpath topology %s", settleTimeout, differs, c.nodes[0].Addr)
		}
		return differs == "", nil
	})
}

// ready waits until a change can begin.
func (c *Cluster) ready(ctx context.Context) error {
	err := c.settle(ctx)
	if ctx.Err() != nil {
		return fmt.Errorf("%w: nothing was changed", ErrStopped)
	}
	return err
}

// difference is empty where all nodes have the same map.
func (c *Cluster) difference() string {
	first := c.nodes[0]
	want := outline(first.view)
	for _, n := range c.members() {
		if n != first && outline(n.view) != want {
			return fmt.Sprintf("%s and %s have different maps", first.Addr, n.Addr)
		}
	}
	return ""
}

// members are the nodes that the first one knows; others were started and never joined.
func (c *Cluster) members() (in []*node) {
	for _, n := range c.nodes {
		if _, known := find(c.nodes[0].view, n.id); known {
			in = append(in, n)
		}
	}
	return in
}

// outline is what all nodes should have in common.
func outline(m cluster.Map) string {
	var lines []string
	for _, n := range m.Nodes {
		lines = append(lines, fmt.Sprint(n.ID, n.Primary, n.PrimaryID, n.HasFlag("handshake"), n.Ranges))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func find(m cluster.Map, id string) (cluster.Node, bool) {
	i := slices.IndexFunc(m.Nodes, func(n cluster.Node) bool { return n.ID == id })
	if i < 0 {
		return cluster.Node{}, false
	}
	return m.Nodes[i], true
}

// poll looks until done, an error, or the end of ctx.
func poll(ctx context.Context, done func() (bool, error)) error {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// running is the node with an id, nil if it does not run.
func (c *Cluster) running(id string) *node {
	i := slices.IndexFunc(c.nodes, func(n *node) bool { return n.id == id })
	if i < 0 {
		return nil
	}
	return c.nodes[i]
}

// masters are the running masters, in the order of their slots.
func (c *Cluster) masters() []*node {
	var in []*node
	for _, n := range c.members() {
		if n.self().Primary {
			in = append(in, n)
		}
	}
	first := func(n *node) int {
		if r := n.self().Ranges; len(r) > 0 {
			return int(r[0].From)
		}
		return cluster.SlotCount
	}
	slices.SortStableFunc(in, func(a, b *node) int { return first(a) - first(b) })
	return in
}

// replicasOf are the running replicas of a node.
func (c *Cluster) replicasOf(id string) []*node {
	return slices.DeleteFunc(c.members(), func(n *node) bool { return n.self().PrimaryID != id })
}

// idPrefix is how much of a node's id names it at least.
const idPrefix = 6

// named finds the node of a map by its address, its port, or the begin of its id.
func (c *Cluster) named(name string) (cluster.Node, error) {
	view := c.nodes[0].view
	for _, n := range view.Nodes {
		if name == n.Addr() || strings.TrimPrefix(name, ":") == fmt.Sprint(n.Port) ||
			len(name) >= idPrefix && strings.HasPrefix(n.ID, name) {
			return n, nil
		}
	}
	var known []string
	for _, n := range view.Nodes {
		role := "replica"
		if n.Primary {
			role = "master"
		}
		known = append(known, n.Addr()+" ("+role+")")
	}
	return cluster.Node{}, misuse("the cluster %q has no node %q; give one of: %s", c.name, name,
		strings.Join(known, ", "))
}

// runningNamed is a node that runs, by its name.
func (c *Cluster) runningNamed(name string) (*node, error) {
	m, err := c.named(name)
	if err != nil {
		return nil, err
	}
	if n := c.running(m.ID); n != nil {
		return n, nil
	}
	return nil, misuse("%s has ended; remove it: slowpath lab cluster del-node --name %s %[1]s", m.Addr(), c.name)
}

// masterNamed is a running master, by its name.
func (c *Cluster) masterNamed(name string) (*node, error) {
	n, err := c.runningNamed(name)
	if err == nil && !n.self().Primary {
		return nil, misuse("%s is a replica, which has no slots of its own; give its master, %s", n.Addr,
			c.addr(n.self().PrimaryID))
	}
	return n, err
}

// addr is the address of a node.
func (c *Cluster) addr(id string) string {
	n, _ := find(c.nodes[0].view, id)
	return n.Addr()
}
