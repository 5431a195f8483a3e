package cluster

import (
	"fmt"
	"net"
	"strconv"

	"slowpath/internal/wire/resp"
)

// builder collects nodes that a reply may name several times.
type builder struct {
	command string // for messages
	m       Map
	ranges  int            // of all nodes
	index   map[string]int // in m.Nodes, by id, or by host and port where there are none
}

// checkReply returns what makes the reply no topology at all.
func (b *builder) checkReply(reply resp.Value) error {
	if err := reply.Err(); err != nil {
		return err
	}
	if reply.Kind != resp.Array {
		return fmt.Errorf("%w: the reply of %s is a %s, want an array", ErrMalformed, b.command, reply.Kind)
	}
	return nil
}

func (b *builder) located(entry int, err error) error {
	return located(fmt.Sprintf("entry %d of %s", entry, b.command), err)
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
