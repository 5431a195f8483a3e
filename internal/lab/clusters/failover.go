package clusters

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"slowpath/internal/lab/step"
	"slowpath/internal/wire/cluster"
)

// How is what makes a replica take over.
type How int

// Kinds of failovers.
const (
	Agreed How = iota // CLUSTER FAILOVER: the master waits until the replica has all of its data
	Forced            // CLUSTER FAILOVER FORCE: without the master, which may be dead; the other masters vote
	Killed            // the master's process is killed, and the others notice that
)

// TookOver is a failover that has ended.
type TookOver struct {
	From, To string
	Slots    []cluster.Range
	Took     time.Duration // until the replica was a master
}

const (
	manualTimeout = 5 * time.Second // CLUSTER_MF_TIMEOUT of Redis' cluster.h: then the attempt is given up
	manualTries   = 3
	usualTimeout  = 15 * time.Second // the default of cluster-node-timeout
	elections     = 4                // that may fail before it is given up, each some times cluster-node-timeout
)

// Failover has a replica take over from its master: the one that is named, or of a master that is named the one with
// the most data.
func (c *Cluster) Failover(ctx context.Context, name string, how How) (done TookOver, err error) {
	if err := c.ready(ctx); err != nil {
		return done, err
	}
	master, replica, err := c.pair(ctx, name, how)
	if err != nil {
		return done, err
	}
	done = TookOver{From: master.Addr(), To: replica.Addr, Slots: master.Ranges}
	begin := time.Now()
	if how == Killed {
		replica, err = c.killMaster(ctx, master)
	} else {
		err = c.askReplica(ctx, replica, how)
	}
	if ctx.Err() != nil && err != nil {
		err = fmt.Errorf("%w: %s may still take over from %s; see: slowpath topology %[2]s", ErrStopped, done.To,
			done.From)
	}
	if err != nil {
		return done, err
	}
	done.To, done.Took = replica.Addr, time.Since(begin)
	return done, c.settle(context.WithoutCancel(ctx))
}

// pair finds the master and the replica of a failover.
func (c *Cluster) pair(ctx context.Context, name string, how How) (master cluster.Node, replica *node, err error) {
	named, err := c.named(name)
	if err != nil {
		return named, nil, err
	}
	master = named
	if !named.Primary {
		if master, _ = find(c.nodes[0].view, named.PrimaryID); c.running(named.ID) == nil {
			return master, nil, misuse("%s has ended, and cannot take over; give another replica, or the master",
				named.Addr())
		}
	}
	switch runs := c.running(master.ID) != nil; {
	case master.Slots() == 0:
		return master, nil, misuse("%s has no slots: its replicas have nothing to take over; give another master",
			master.Addr())
	case !runs && how == Killed:
		return master, nil, misuse("%s has ended already; leave out --kill, and give --force", master.Addr())
	case !runs && how == Agreed:
		return master, nil, misuse("%s has ended, and cannot agree; give --force", master.Addr())
	}
	if how != Agreed {
		if err := c.checkVotes(master, how); err != nil {
			return master, nil, err
		}
	}
	replica, err = c.bestReplica(ctx, master, named)
	return master, replica, err
}

// checkVotes refuses a failover for which there is no majority of masters.
func (c *Cluster) checkVotes(master cluster.Node, how How) error {
	size, voters := 0, 0
	for _, n := range c.nodes[0].view.Nodes {
		if n.Primary && n.Slots() > 0 {
			size++
			if c.running(n.ID) != nil && (n.ID != master.ID || how != Killed) {
				voters++
			}
		}
	}
	if voters <= size/2 {
		return misuse("%d of %d masters would be there to vote, and more than half must: add masters with slots "+
			"(slowpath lab cluster add-node --name %s --slots 1000), or fail over without --kill", voters, size, c.name)
	}
	return nil
}

// bestReplica is the replica that is named, or the one with the most data that is connected to its master.
func (c *Cluster) bestReplica(ctx context.Context, master, named cluster.Node) (best *node, err error) {
	if !named.Primary {
		best = c.running(named.ID)
		return best, nil
	}
	most := int64(-1)
	for _, r := range c.replicasOf(master.ID) {
		text, err := r.text(ctx, "INFO", "replication")
		if err != nil {
			return nil, err
		}
		if offset := field(text, "slave_repl_offset"); offset > most {
			best, most = r, offset
		}
	}
	if best == nil {
		return nil, misuse("%s has no replica that could take over; add one: slowpath lab cluster add-node --name %s "+
			"--replica-of %[1]s", master.Addr(), c.name)
	}
	return best, nil
}

// field is a number of a reply to INFO; -1: it has none.
func field(info, name string) int64 {
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, name+":"); ok {
			if n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64); err == nil {
				return n
			}
		}
	}
	return -1
}

// askReplica asks a replica to take over, and again where an attempt has failed. Masters vote for replicas of one
// master once in twice cluster-node-timeout.
func (c *Cluster) askReplica(ctx context.Context, r *node, how How) error {
	cmd := []string{"CLUSTER", "FAILOVER"}
	if how == Forced {
		cmd = append(cmd, "FORCE")
	}
	c.Note(r.Addr + " takes over")
	step.Say(ctx, "waiting until %s is a master", r.Addr)
	within := manualTries*manualTimeout + 2*c.nodeTimeout(ctx)
	for begin := time.Now(); time.Since(begin) < within; {
		if _, err := r.do(ctx, cmd...); err != nil {
			return err
		}
		attempt := time.Now()
		master := false
		err := poll(ctx, func() (_ bool, err error) {
			master, err = r.isMaster(ctx)
			return master || time.Since(attempt) > manualTimeout, err
		})
		if err != nil || master {
			return err
		}
	}
	return fmt.Errorf("%s did not take over within %v; its log says why: %s", r.Addr, within, r.LogPath)
}

// isMaster asks a node itself.
func (n *node) isMaster(ctx context.Context) (bool, error) {
	reply, err := n.do(ctx, "ROLE")
	role, _ := reply.([]any)
	return len(role) > 0 && role[0] == "master", err
}

// killMaster kills a master, and waits until one of its replicas was elected.
func (c *Cluster) killMaster(ctx context.Context, m cluster.Node) (*node, error) {
	master, replicas := c.running(m.ID), c.replicasOf(m.ID)
	timeout := c.nodeTimeout(ctx)
	if err := master.Kill(ctx); err != nil {
		return nil, err
	}
	c.ended = append(c.ended, master.Instance)
	c.remove(master)
	c.Note(fmt.Sprintf("%s is killed; the others notice that after cluster-node-timeout, %v", master.Addr, timeout))
	step.Say(ctx, "waiting until a replica is elected")
	within := 4 * elections * max(timeout, time.Second)
	end := time.Now().Add(within)
	var elected *node
	err := poll(ctx, func() (bool, error) {
		for _, r := range replicas {
			if is, err := r.isMaster(ctx); err != nil || is {
				elected = r
				return is, err
			}
		}
		return time.Now().After(end), nil
	})
	if err == nil && elected == nil {
		err = fmt.Errorf("no replica was elected within %v", within)
	}
	if err != nil {
		return nil, fmt.Errorf("%s was killed: %w; see: slowpath topology %s", master.Addr, err, c.nodes[0].Addr)
	}
	return elected, nil
}

// nodeTimeout is cluster-node-timeout.
func (c *Cluster) nodeTimeout(ctx context.Context) time.Duration {
	reply, err := c.nodes[0].do(ctx, "CONFIG", "GET", "cluster-node-timeout")
	pair, _ := reply.([]any)
	if err != nil || len(pair) != 2 {
		return usualTimeout
	}
	text, _ := pair[1].(string)
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return usualTimeout
	}
	return time.Duration(ms) * time.Millisecond
}
