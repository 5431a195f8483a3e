package cluster

import (
	"fmt"

	"slowpath/internal/wire/resp"
)

// ParseShards parses the reply of CLUSTER SHARDS (since Redis 7.0), an array of shards with slots and nodes, each a map
// in RESP3 and a flat array in RESP2. Keys that are not known are passed over. The slots belong to the first primary of
// the shard that has not failed: after a failover a dead one may still be listed. An error reply is returned as a
// [*resp.ServerError].
func ParseShards(reply resp.Value) (Map, error) {
	b := builder{command: "CLUSTER SHARDS", index: map[string]int{}}
	if err := b.checkReply(reply); err != nil {
		return Map{}, err
	}
	for i, shard := range reply.Elems {
		if err := b.addShard(shard); err != nil {
			return Map{}, b.located(i, err)
		}
	}
	return b.m, nil
}

func (b *builder) addShard(shard resp.Value) error {
	nodes, ok := shard.Get("nodes")
	if !ok {
		return fmt.Errorf("a shard without nodes")
	}
	slots, _ := shard.Get("slots")
	id, _ := shard.Get("id") // since Valkey 9
	if len(slots.Elems)%2 != 0 {
		return fmt.Errorf("%d bounds of slots, want pairs", len(slots.Elems))
	}
	primary, members := -1, make([]int, 0, min(len(nodes.Elems), 16))
	for _, value := range nodes.Elems {
		n, err := shardNode(value)
		if err != nil {
			return err
		}
		n.ShardID = id.Text()
		i, err := b.add(n)
		if err != nil {
			return err
		}
		members = append(members, i)
		if n.Primary && (primary < 0 || b.m.Nodes[primary].Failed() && !n.Failed()) {
			primary = i
		}
	}
	if primary < 0 {
		return nil // a shard that lost its primary: its slots have no owner
	}
	for _, i := range members {
		if n := &b.m.Nodes[i]; !n.Primary {
			n.PrimaryID = b.m.Nodes[primary].ID
		}
	}
	for from, to := range slots.Pairs() {
		r, err := slotRange(from, to)
		if err != nil {
			return err
		}
		if err := b.own(primary, r); err != nil {
			return err
		}
	}
	return nil
}

// shardNode parses one node: id, port and tls-port (at least one), ip, endpoint, hostname, role, replication-offset,
// health.
func shardNode(value resp.Value) (Node, error) {
	var n Node
	for key, field := range value.Pairs() {
		var err error
		switch key.Text() {
		case "id":
			n.ID = field.Text()
		case "port":
			err = setPort(&n.Port, field)
		case "tls-port":
			err = setPort(&n.TLSPort, field)
		case "ip":
			n.IP = field.Text()
		case "endpoint":
			n.Host = field.Text()
		case "hostname":
			n.Hostname = field.Text()
		case "role":
			n.Primary = field.Text() == "master" || field.Text() == "primary"
		case "health":
			n.Health = field.Text()
		}
		if err != nil {
			return Node{}, err
		}
	}
	if n.ID == "" {
		return Node{}, fmt.Errorf("a node without an id")
	}
	n.resolveHost()
	return n, nil
}
