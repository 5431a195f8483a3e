package fleet

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"slowpath/internal/lab/step"
)

// form makes a cluster of the nodes, in the order of redis-cli --cluster create: slots, epochs, meet, replicate.
func (c *Cluster) form(ctx context.Context) error {
	nodes, err := c.connect(ctx)
	defer func() {
		for _, n := range nodes {
			n.Close()
		}
	}()
	if err != nil {
		return err
	}
	step.Say(ctx, "making a cluster of %d nodes", len(nodes))
	for k, n := range nodes {
		if k < c.Masters {
			if err := n.addSlots(ctx, k*Slots/c.Masters, (k+1)*Slots/c.Masters-1); err != nil {
				return err
			}
		}
		// With distinct epochs the nodes need not resolve collisions, which takes seconds.
		if _, err := n.ask(ctx, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(k+1)); err != nil {
			return err
		}
	}
	if err := meet(ctx, nodes); err != nil {
		return err
	}
	if err := c.replicate(ctx, nodes); err != nil {
		return err
	}
	return c.awaitOK(ctx, nodes)
}

// node is a connection to one node of the cluster, logged in.
type node struct {
	*conn
	info Info
}

// ask names the node and the command in its errors.
func (n node) ask(ctx context.Context, args ...string) (any, error) {
	reply, err := n.conn.ask(ctx, args...)
	if err != nil {
		return nil, fmt.Errorf("%s of %s: %w", strings.Join(args[:min(2, len(args))], " "), n.info.Addr, err)
	}
	return reply, nil
}

func (n node) text(ctx context.Context, args ...string) (string, error) {
	reply, err := n.ask(ctx, args...)
	s, _ := reply.(string)
	return s, err
}

func (c *Cluster) connect(ctx context.Context) ([]node, error) {
	var nodes []node
	for _, i := range c.Nodes {
		if err := i.AwaitLoaded(ctx); err != nil {
			return nodes, err
		}
		conn, err := i.login(ctx)
		if err != nil {
			return nodes, fmt.Errorf("connecting to %s: %w", i.Addr, err)
		}
		nodes = append(nodes, node{conn, i.Info})
	}
	return nodes, nil
}

// slotsAtOnce keeps ADDSLOTS commands small.
const slotsAtOnce = 1000

// addSlots uses ADDSLOTSRANGE (Redis ≥ 7.0), or ADDSLOTS if the server does not know it.
func (n node) addSlots(ctx context.Context, from, to int) error {
	_, err := n.ask(ctx, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(from), strconv.Itoa(to))
	var r refusal
	if !errors.As(err, &r) {
		return err
	}
	for from <= to {
		args := []string{"CLUSTER", "ADDSLOTS"}
		for ; from <= to && len(args) < 2+slotsAtOnce; from++ {
			args = append(args, strconv.Itoa(from))
		}
		if _, err := n.ask(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// clusterPoll is shorter than the time between two gossip rounds (100 ms).
const clusterPoll = 50 * time.Millisecond

// replicate makes every node after the masters a replica of its master.
func (c *Cluster) replicate(ctx context.Context, nodes []node) error {
	for k, n := range nodes[c.Masters:] {
		id, err := nodes[k%c.Masters].text(ctx, "CLUSTER", "MYID")
		if err != nil {
			return err
		}
		err = poll(ctx, clusterPoll, func() (bool, error) {
			_, err := n.ask(ctx, "CLUSTER", "REPLICATE", id)
			var r refusal
			if errors.As(err, &r) && strings.Contains(string(r), "Unknown node") { // still in handshake
				return false, nil
			}
			return true, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// awaitOK waits until every node serves all slots and knows all replicas, and every replica is in sync with its master.
func (c *Cluster) awaitOK(ctx context.Context, nodes []node) error {
	step.Say(ctx, "waiting until all %d nodes of the cluster agree", len(nodes))
	introduce := introductions(nodes)
	err := each(ctx, nodes, "cluster_state:ok", func(n node) (bool, error) {
		info, err := n.text(ctx, "CLUSTER", "INFO")
		if err != nil || infoField(info, "cluster_state") == "ok" && infoField(info,
			"cluster_slots_ok") == strconv.Itoa(Slots) {
			return err == nil, err
		}
		return false, introduce(ctx)
	})
	if err != nil {
		return err
	}
	err = each(ctx, nodes, "its view of all replicas", func(n node) (bool, error) {
		list, err := n.text(ctx, "CLUSTER", "NODES")
		if err != nil || replicasIn(list) == len(nodes)-c.Masters {
			return err == nil, err
		}
		return false, introduce(ctx)
	})
	if err != nil {
		return err
	}
	// A message is passed on to those nodes alone to which there is a link.
	err = each(ctx, nodes, "the end of its handshakes, and its links", func(n node) (bool, error) {
		list, err := n.text(ctx, "CLUSTER", "NODES")
		return strings.Count(list, "\n") == len(nodes) && !strings.Contains(list, " disconnected"), err
	})
	if err != nil {
		return err
	}
	return each(ctx, nodes[c.Masters:], "master_link_status:up", func(n node) (bool, error) {
		info, err := n.text(ctx, "INFO", "replication")
		return infoField(info, "master_link_status") == "up", err
	})
}

// replicasIn counts the lines of CLUSTER NODES (ID ADDRESS FLAGS MASTER …) with the flag slave.
func replicasIn(list string) int {
	count := 0
	for line := range strings.Lines(list) {
		f := strings.Fields(line)
		if len(f) > 3 && strings.Contains(","+f[2]+",", ",slave,") && f[3] != "-" {
			count++
		}
	}
	return count
}

// each polls every node in turn until the condition holds for all.
func each(ctx context.Context, nodes []node, what string, holds func(node) (bool, error)) error {
	for _, n := range nodes {
		err := poll(ctx, clusterPoll, func() (bool, error) { return holds(n) })
		if err != nil {
			return fmt.Errorf("waiting for %s on %s: %w; %s", what, n.info.Addr, err, n.info.logTail())
		}
	}
	return nil
}
