package cluster

import (
	"fmt"
	"net"
	"strconv"

	"slowpath/internal/wire/resp"
)

// ParseSlots parses the reply of CLUSTER SLOTS, an array of [first, last, primary, replica…], where a node is [host,
// port], since Redis 4 with its id, since 7.0 with an array (RESP3: a map) of its other names. A node that owns several
// ranges is one Node. An error reply is returned as a [*resp.ServerError]; where no slot has a node, it is ErrNoNodes.
func ParseSlots(reply resp.Value) (Map, error) {
	if err := reply.Err(); err != nil {
		return Map{}, err
	}
	if reply.Kind != resp.Array {
		return Map{}, fmt.Errorf("%w: the reply of CLUSTER SLOTS is a %s, want an array", ErrMalformed, reply.Kind)
	}
	b := builder{index: map[string]int{}}
	for i, entry := range reply.Elems {
		if err := b.addEntry(entry); err != nil {
			return Map{}, located(fmt.Sprintf("entry %d of CLUSTER SLOTS", i), err)
		}
	}
	if len(b.m.Nodes) == 0 {
		return Map{}, ErrNoNodes
	}
	return b.m, nil
}

func (b *builder) addEntry(entry resp.Value) error {
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

// resolveHost sets Host. A null or empty host stands for the host that replied. A question mark stands for a node
// without a hostname although the cluster prefers hostnames: its address is used (cluster-preferred-endpoint-type in
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

// builder collects nodes, which a reply may list several times.
type builder struct {
	m      Map
	ranges int            // of all nodes
	index  map[string]int // in m.Nodes, by id, or by host and port if there are no ids
}

// own adds slots to a node.
func (b *builder) own(node int, slots Range) error {
	if b.ranges++; b.ranges > maxRanges {
		return fmt.Errorf("%w: more than %d ranges of slots", ErrTooLarge, maxRanges)
	}
	b.m.Nodes[node].Ranges = append(b.m.Nodes[node].Ranges, slots)
	return nil
}

// add returns the index of a node, which is appended if it is new.
func (b *builder) add(n Node) (int, error) {
	key := n.ID
	if key == "" {
		key = net.JoinHostPort(n.Host, strconv.Itoa(n.Port))
	}
	if i, ok := b.index[key]; ok {
		return i, nil
	}
	if len(b.m.Nodes) == maxNodes {
		return 0, fmt.Errorf("%w: more than %d nodes", ErrTooLarge, maxNodes)
	}
	b.m.Nodes = append(b.m.Nodes, n)
	b.index[key] = len(b.m.Nodes) - 1
	return len(b.m.Nodes) - 1, nil
}

func slotRange(from, to resp.Value) (Range, error) {
	first, ok := from.Integer()
	last, alsoOK := to.Integer()
	if !ok || !alsoOK || first < 0 || first > last || last >= SlotCount {
		return Range{}, fmt.Errorf("slots %.20q to %.20q", from.Text(), to.Text())
	}
	return Range{uint16(first), uint16(last)}, nil
}

func setPort(port *int, value resp.Value) error {
	n, ok := value.Integer()
	if !ok || n < 0 || n > 65535 {
		return fmt.Errorf("port %.20q", value.Text())
	}
	*port = int(n)
	return nil
}
