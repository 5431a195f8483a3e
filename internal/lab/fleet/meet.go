package fleet

import (
	"context"
	"net"
	"strconv"
	"time"
)

// meetAgain is the period of repeated introductions. One may get lost. Each also has the slots and the role of its
// sender, so that repeating them is faster than gossip, in which a node may wait half of cluster-node-timeout.
const meetAgain = time.Second

// meetAll is the largest number of nodes of which every pair is introduced, which takes n² commands.
const meetAll = 64

// meet introduces the nodes to each other; in a large cluster each to the first one only, and gossip does the rest. It
// waits until each knows all, where nodes in handshake count.
func meet(ctx context.Context, nodes []node) error {
	introduce := introductions(nodes)
	return each(ctx, nodes, "a view of all nodes", func(n node) (bool, error) {
		info, err := n.text(ctx, "CLUSTER", "INFO")
		if err != nil || infoField(info, "cluster_known_nodes") == strconv.Itoa(len(nodes)) {
			return err == nil, err
		}
		return false, introduce(ctx)
	})
}

// introductions returns a function that introduces the nodes, at most once in meetAgain.
func introductions(nodes []node) func(context.Context) error {
	var last time.Time
	return func(ctx context.Context) error {
		if time.Since(last) < meetAgain {
			return nil
		}
		last = time.Now()
		for k, known := range nodes {
			if k > 0 && len(nodes) > meetAll {
				return nil
			}
			if err := introduceTo(ctx, known, nodes); err != nil {
				return err
			}
		}
		return nil
	}
}

func introduceTo(ctx context.Context, known node, nodes []node) error {
	host, port, err := net.SplitHostPort(known.info.Addr)
	if err != nil {
		return err
	}
	for _, other := range nodes {
		if other.info.Addr == known.info.Addr {
			continue
		}
		if _, err := other.ask(ctx, "CLUSTER", "MEET", host, port); err != nil {
			return err
		}
	}
	return nil
}
