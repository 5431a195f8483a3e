package clusters

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/servers"
	"slowpath/internal/lab/step"
	"slowpath/internal/wire/cluster"
)

// joinTimeout bounds how long a new node may take until all nodes know it, or until it has the data of its master.
const joinTimeout = time.Minute

// Addition is a node that joins.
type Addition struct {
	Port      int    // 0: a free one
	ReplicaOf string // its master; empty: it is a master
	Slots     int    // that a new master gets of the others
	Pace      Pace
}

// Added is a node that has joined.
type Added struct {
	Node   fleet.Info
	Joined bool
	Master string // its address; empty: the node is one
	Moved  Moved
}

// Add starts a server like the others, has it join, and moves slots to it. If it cannot join, or ctx ends before it
// has, it is removed again.
func (c *Cluster) Add(ctx context.Context, bin servers.Binary, a Addition) (done Added, err error) {
	if err := c.ready(ctx); err != nil {
		return done, err
	}
	role := "master"
	var master *node
	if a.ReplicaOf != "" {
		role = "replica"
		if master, err = c.masterNamed(a.ReplicaOf); err != nil {
			return done, err
		}
		done.Master = master.Addr
	}
	others := c.masters()
	if _, err := take(others, nil, a.Slots); err != nil { // before a server is started
		return done, err
	}
	c.Note("starting a server")
	i, err := c.fleet.StartLike(ctx, c.Like(), bin, a.Port, role)
	if ctx.Err() != nil && err != nil {
		err = fmt.Errorf("%w: the new server was removed again", ErrStopped)
	}
	if err != nil {
		return done, err
	}
	done.Node = i.Info
	n, err := c.join(ctx, i, master)
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %s was removed again", ErrStopped, i.Addr)
		}
		return done, errors.Join(err, c.undo(context.WithoutCancel(ctx), i, n))
	}
	done.Joined = true
	if a.Slots == 0 {
		return done, c.settle(context.WithoutCancel(ctx))
	}
	if err := c.endBrokenMoves(ctx); err != nil {
		return done, err
	}
	moves, err := take(others, n, a.Slots)
	if err == nil {
		done.Moved, err = c.moveAll(ctx, moves, a.Pace)
	}
	return done, err
}

// join makes a server a node of the cluster, and of a master its replica.
func (c *Cluster) join(ctx context.Context, i *fleet.Instance, master *node) (*node, error) {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	known := slices.Clone(c.nodes)
	n, err := c.connect(ctx, i)
	if err != nil {
		return nil, err
	}
	c.Note(fmt.Sprintf("%s joins", n.Addr))
	step.Say(ctx, "waiting until all nodes know %s", n.Addr)
	if err := introduce(ctx, n, known); err != nil {
		return n, err
	}
	err = poll(ctx, func() (bool, error) {
		known, err := c.allKnow(ctx)
		if err != nil || !known {
			return false, err
		}
		return c.allServe(ctx)
	})
	if err == nil && master != nil {
		c.Note(fmt.Sprintf("%s copies the data of %s", n.Addr, master.Addr))
		err = n.follow(ctx, master.id)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%s did not join within %v; its log: %s", n.Addr, joinTimeout, n.LogPath)
	}
	return n, err
}

func introduce(ctx context.Context, n *node, known []*node) error {
	host, port, err := net.SplitHostPort(n.Addr)
	if err != nil {
		return err
	}
	for _, k := range known {
		if _, err := k.do(ctx, "CLUSTER", "MEET", host, port); err != nil {
			return err
		}
	}
	return nil
}

// allKnow: every node knows all others.
func (c *Cluster) allKnow(ctx context.Context) (bool, error) {
	if err := c.look(ctx); err != nil {
		return false, err
	}
	for _, n := range c.nodes {
		for _, m := range c.nodes {
			if other, ok := find(n.view, m.id); !ok || other.HasFlag("handshake") {
				return false, nil
			}
		}
	}
	return true, nil
}

// allServe: all nodes serve calls, and know the greatest epoch. A new node does so some time after it knows the others.
// If it got a slot before, it would refuse the keys; and with an epoch that is too small, lose it to the old owner.
func (c *Cluster) allServe(ctx context.Context) (bool, error) {
	epochs, serving := map[int64]bool{}, true
	for _, n := range c.nodes {
		text, err := n.text(ctx, "CLUSTER", "INFO")
		if err != nil {
			return false, err
		}
		epochs[field(text, "cluster_current_epoch")] = true
		serving = serving && strings.Contains(text, "cluster_state:ok")
	}
	return serving && len(epochs) == 1, nil
}

// follow makes a node a replica, and waits until it is in sync.
func (n *node) follow(ctx context.Context, master string) error {
	step.Say(ctx, "waiting until %s has the data", n.Addr)
	if _, err := n.do(ctx, "CLUSTER", "REPLICATE", master); err != nil {
		return err
	}
	return poll(ctx, func() (bool, error) { return n.inSync(ctx) })
}

func (n *node) inSync(ctx context.Context) (bool, error) {
	text, err := n.text(ctx, "INFO", "replication")
	return strings.Contains(text, "master_link_status:up"), err
}

// undo removes a server that could not join. It is stopped first: what nodes have begun to know by MEET they cannot
// forget yet, and without it they never will.
func (c *Cluster) undo(ctx context.Context, i *fleet.Instance, n *node) error {
	err := i.Stop(ctx)
	if n != nil {
		c.remove(n)
		err = errors.Join(err, c.forget(ctx, n.id))
	}
	return errors.Join(err, c.settle(ctx))
}

// Removed is a node that has left.
type Removed struct {
	Addr  string
	Moved Moved
}

// Remove moves the slots of a node to the other masters, has all nodes forget it, and stops it. The end of ctx ends it
// after the slot that is being moved; then the node stays. Replicas of the node go on with a master that got its slots.
func (c *Cluster) Remove(ctx context.Context, name string, p Pace) (done Removed, err error) {
	if err := c.ready(ctx); err != nil {
		return done, err
	}
	stray := slices.IndexFunc(c.nodes, func(n *node) bool {
		_, known := find(c.nodes[0].view, n.id)
		return !known && (name == n.Addr || strings.TrimPrefix(name, ":") == fmt.Sprint(n.Port))
	})
	if stray >= 0 { // it was started, and the command was killed before it joined
		n := c.nodes[stray]
		c.remove(n)
		return Removed{Addr: n.Addr}, n.Stop(ctx)
	}
	m, err := c.named(name)
	if err != nil {
		return done, err
	}
	done.Addr = m.Addr()
	n := c.running(m.ID)
	if n == nil {
		return done, c.removeEnded(ctx, m)
	}
	if n.self().Slots() > 0 {
		if done.Moved, err = c.empty(ctx, n, p); err != nil || done.Moved.Stopped {
			return done, err
		}
	}
	ctx = context.WithoutCancel(ctx) // from here on it takes a second
	if err := c.rehome(ctx, n); err != nil {
		return done, err
	}
	c.remove(n)
	if err := c.forget(ctx, n.id); err != nil {
		return done, err
	}
	if err := n.Stop(ctx); err != nil {
		return done, err
	}
	return done, c.settle(ctx)
}

// empty moves all slots of a master to the others.
func (c *Cluster) empty(ctx context.Context, n *node, p Pace) (Moved, error) {
	if err := c.endBrokenMoves(ctx); err != nil {
		return Moved{}, err
	}
	others := slices.DeleteFunc(c.masters(), func(m *node) bool { return m == n })
	if len(others) == 0 {
		return Moved{}, onlyMaster(n)
	}
	return c.moveAll(ctx, give(n, others), p)
}

func onlyMaster(n *node) error {
	return misuse("%s is the only master that could have slots; stop the whole cluster with slowpath lab down", n.Addr)
}

// rehome gives replicas of a node that goes to the master with the fewest replicas.
func (c *Cluster) rehome(ctx context.Context, n *node) error {
	if err := c.look(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	for _, r := range c.replicasOf(n.id) {
		others := slices.DeleteFunc(c.masters(), func(m *node) bool { return m == n || m.self().Slots() == 0 })
		if len(others) == 0 {
			return onlyMaster(n)
		}
		to := slices.MinFunc(others, func(a, b *node) int {
			return len(c.replicasOf(a.id)) - len(c.replicasOf(b.id))
		})
		c.Note(fmt.Sprintf("%s becomes a replica of %s", r.Addr, to.Addr))
		if err := r.follow(ctx, to.id); err != nil {
			return err
		}
		if err := c.look(ctx); err != nil {
			return err
		}
	}
	return nil
}

// forget has all nodes forget one. A replica still refuses while the node is its master in its own view.
func (c *Cluster) forget(ctx context.Context, id string) error {
	end := time.Now().Add(settleTimeout)
	for _, n := range c.nodes {
		err := poll(ctx, func() (bool, error) {
			_, err := n.do(ctx, "CLUSTER", "FORGET", id)
			if fleet.Refused(err, "Unknown node") {
				return true, nil
			}
			if fleet.Refused(err, "Can't forget my master") && time.Now().Before(end) {
				return false, nil
			}
			return err == nil, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// removeEnded removes a node whose process has ended.
func (c *Cluster) removeEnded(ctx context.Context, m cluster.Node) error {
	if m.Slots() > 0 {
		return misuse("%s has ended, and has still %d slots: they have no other node; have a replica of it take over "+
			"(slowpath lab cluster failover), or start the cluster again", m.Addr(), m.Slots())
	}
	if err := c.forget(ctx, m.ID); err != nil {
		return err
	}
	for _, i := range c.ended {
		if i.Addr == m.Addr() {
			if err := i.Stop(ctx); err != nil {
				return err
			}
		}
	}
	return c.settle(ctx)
}
