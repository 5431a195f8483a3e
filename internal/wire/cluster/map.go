// Package cluster knows hash slots and the map of a Redis or Valkey cluster: which node owns which slot, which node is
// a replica of which, and which slots are being moved. It parses CLUSTER NODES, SLOTS and INFO of every version, and
// redirects; it opens no connection.
//
// What it parses is untrusted: nodes, lines and ranges are bounded, and an error says which line or entry is malformed.
package cluster

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
)

// Errors of the parsers.
var (
	ErrMalformed = errors.New("malformed cluster topology")
	ErrTooLarge  = errors.New("cluster topology too large")
	ErrNoNodes   = errors.New("the map of the cluster names no node")
)

// Limits of the parsers. Redis recommends at most 1 000 nodes; a line has at most about 120 KB, if the node owns every
// second slot.
const (
	maxNodes     = 10_000
	maxLineBytes = 256 << 10
	maxTextBytes = 64 << 20
	maxRanges    = SlotCount // of all nodes together: in one node's view a slot has one owner
)

// located adds where the reply is wrong, and ErrMalformed unless it is too large.
func located(where string, err error) error {
	if errors.Is(err, ErrTooLarge) {
		return fmt.Errorf("%s: %w", where, err)
	}
	return fmt.Errorf("%w: %s: %v", ErrMalformed, where, err)
}

// Map is the map of a cluster as one of its nodes sees it. The parsers give none without nodes.
type Map struct {
	Nodes []Node // in the order of the reply
}

// Node is one node of a cluster. What the reply does not have is the zero value: only CLUSTER NODES has flags, epochs
// and links.
type Node struct {
	ID string
	// where clients should connect: an address or a name; empty if the node does not say (see [Map.FillHosts])
	Host     string
	Port     int    // 0 if unknown or if only TLS is served
	TLSPort  int    // 0 if unknown; a reply over a TLS connection has the TLS port in Port
	BusPort  int    // of the cluster bus between the nodes
	Hostname string // announced by the node, if any
	IP       string // if the reply has it in addition to Host
	ShardID  string

	Primary   bool
	PrimaryID string   // of a replica
	Flags     []string // as in CLUSTER NODES: myself, master, slave, fail?, fail, handshake, noaddr, nofailover

	Epoch         uint64 // config epoch: among nodes that claim a slot the greatest wins
	LinkConnected bool   // the bus link from the replying node to this one

	Ranges    []Range // of slots owned, for a primary
	Migrating []Move  // slots that are being moved to another node
	Importing []Move  // slots that are being moved from another node
}

// Range is the slots from From to To, both included.
type Range struct{ From, To uint16 }

// Len returns the number of slots of the range.
func (r Range) Len() int { return int(r.To) - int(r.From) + 1 }

// Move is a slot that is being moved, and the node at the other end.
type Move struct {
	Slot   uint16
	NodeID string
}

// Addr returns host:port to dial, with the brackets of an IPv6 address; the TLS port if that is the only one. It is
// empty if host or port are not known.
func (n Node) Addr() string {
	port := n.Port
	if port == 0 {
		port = n.TLSPort
	}
	if n.Host == "" || port == 0 {
		return ""
	}
	return net.JoinHostPort(n.Host, strconv.Itoa(port))
}

// HasFlag reports whether the node has the flag of CLUSTER NODES.
func (n Node) HasFlag(flag string) bool { return slices.Contains(n.Flags, flag) }

// Failed reports whether the replying node marks this one as failed (not only suspected, `fail?`).
func (n Node) Failed() bool { return n.HasFlag("fail") }

// Slots returns the number of slots that the node owns.
func (n Node) Slots() int {
	sum := 0
	for _, r := range n.Ranges {
		sum += r.Len()
	}
	return sum
}

// FillHosts sets the host of nodes without one: by the protocol they are reached at the host that replied. Nodes whose
// address the cluster does not know (`noaddr`) are left out.
func (m *Map) FillHosts(host string) {
	for i := range m.Nodes {
		if n := &m.Nodes[i]; n.Host == "" && !n.HasFlag("noaddr") {
			n.Host = host
		}
	}
}

// Owners returns for each slot the index in Nodes of its owner, or -1. If several nodes claim a slot, its owner is the
// one with the greatest epoch, then the first.
func (m Map) Owners() []int {
	owners := make([]int, SlotCount)
	for slot := range owners {
		owners[slot] = -1
	}
	for i, n := range m.Nodes {
		for _, r := range n.Ranges {
			for slot := int(r.From); slot <= min(int(r.To), SlotCount-1); slot++ {
				if at := owners[slot]; at < 0 || n.Epoch > m.Nodes[at].Epoch {
					owners[slot] = i
				}
			}
		}
	}
	return owners
}

// Uncovered returns the slots that no node owns, as the fewest ranges in ascending order.
func (m Map) Uncovered() []Range {
	var gaps []Range
	for slot, owner := range m.Owners() {
		switch last := len(gaps) - 1; {
		case owner >= 0:
		case last >= 0 && int(gaps[last].To) == slot-1:
			gaps[last].To++
		default:
			gaps = append(gaps, Range{uint16(slot), uint16(slot)})
		}
	}
	return gaps
}

// Myself returns the node whose reply it is, the first that is marked so: CLUSTER SLOTS marks none.
func (m Map) Myself() (Node, bool) {
	if i := slices.IndexFunc(m.Nodes, func(n Node) bool { return n.HasFlag("myself") }); i >= 0 {
		return m.Nodes[i], true
	}
	return Node{}, false
}

// Serving returns the primaries that have slots and an address.
func (m Map) Serving() []Node {
	var serving []Node
	for _, n := range m.Nodes {
		if n.Primary && len(n.Ranges) > 0 && n.Addr() != "" {
			serving = append(serving, n)
		}
	}
	return serving
}

// Replicas returns the replicas of a primary.
func (m Map) Replicas(primaryID string) []Node {
	var replicas []Node
	for _, n := range m.Nodes {
		if !n.Primary && n.PrimaryID != "" && n.PrimaryID == primaryID {
			replicas = append(replicas, n)
		}
	}
	return replicas
}

// Node returns the node with the id.
func (m Map) Node(id string) (Node, bool) {
	for _, n := range m.Nodes {
		if n.ID == id && id != "" {
			return n, true
		}
	}
	return Node{}, false
}
