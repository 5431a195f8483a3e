package cluster

import (
	"fmt"
	"net"

	"slowpath/internal/wire/resp"
)

// ParseSlots parses the reply of CLUSTER SLOTS, an array of [first, last, primary, replica…], where a node is [host,
// port], since Redis 4 with its id, since 7.0 with an array (RESP3: a map) of its other names. A node that owns several
// ranges is one Node. An error reply is returned as a [*resp.ServerError].
func ParseSlots(reply resp.Value) (Map, error) {
	b := builder{command: "CLUSTER SLOTS", index: map[string]int{}}
	if err := b.checkReply(reply); err != nil {
		return Map{}, err
	}
	for i, entry := range reply.Elems {
		if err := b.addSlotsEntry(entry); err != nil {
			return Map{}, b.located(i, err)
		}
	}
	return b.m, nil
}

func (b *builder) addSlotsEntry(entry resp.Value) error {
	if len(entry.Elems) < 2 {
		return fmt.Errorf("%d elements, want slots and nodes", len(entry.Elems))
	}
	slots, err := slotRange(entry.Elems[0], entry.Elems[1])
	if err != nil {
		return err
	}
	primary := -1
	for _, value := range entry.Elems[2:] {
		n, err := slotsNode(value)
		if err != nil {
			return err
		}
		if primary >= 0 {
			n.PrimaryID = b.m.Nodes[primary].ID
			if _, err := b.add(n); err != nil {
				return err
			}
			continue
		}
		n.Primary = true
		if primary, err = b.add(n); err != nil {
			return err
		}
		owner := &b.m.Nodes[primary]
		owner.Primary, owner.PrimaryID = true, ""
		if err := b.own(primary, slots); err != nil {
			return err
		}
	}
	return nil
}

// slotsNode parses [host, port, id, names].
func slotsNode(value resp.Value) (Node, error) {
	if len(value.Elems) < 2 {
		return Node{}, fmt.Errorf("a node of %d elements, want host and port", len(value.Elems))
	}
	n := Node{Host: value.Elems[0].Text()}
	if err := setPort(&n.Port, value.Elems[1]); err != nil {
		return Node{}, err
	}
	if len(value.Elems) > 2 {
		n.ID = value.Elems[2].Text()
	}
	if len(value.Elems) > 3 {
		for key, name := range value.Elems[3].Pairs() {
			switch key.Text() {
			case "ip":
				n.IP = name.Text()
			case "hostname":
				n.Hostname = name.Text()
			}
		}
	}
	n.resolveHost()
	return n, nil
}

// resolveHost settles what Host is. A null or empty host means: where the reply came from. A question mark means that
// the node has no hostname though the cluster prefers them, and its address will do (cluster-preferred-endpoint-type in
// redis.conf).
func (n *Node) resolveHost() {
	if n.Host == "?" {
		n.Host = knownHost(n.IP)
	}
	switch {
	case n.Host == "" || n.Host == n.IP:
	case net.ParseIP(n.Host) != nil:
		if n.IP == "" {
			n.IP = n.Host
		}
	case n.Hostname == "":
		n.Hostname = n.Host
	}
}
