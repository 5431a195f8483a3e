package fleet

import (
	"context"
	"net"
	"strconv"
	"time"
)

// meetAgain is how often introductions are repeated. One may get lost, and each carries the slots and the role of its
// sender, so repeating them spreads these faster than gossip, where a node may wait half of cluster-node-timeout for
// its turn.
const meetAgain = time.Second

// meetAll is up to how many nodes every pair is introduced; it takes n² commands.
const meetAll = 64

// meet introduces the nodes to each other, in a large cluster each to the first one only; gossip does the rest. The
// count includes nodes in handshake, so this is only the start.
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
