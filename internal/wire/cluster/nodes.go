package cluster

import (
	"fmt"
	"net"
	"strconv"
	"strings"
)

// ParseNodes parses CLUSTER NODES of any version, and the nodes.conf file, which has the same form and a last line of
// variables:
//
//	<id> <ip:port@cport,hostname,shard-id=…> <flags> <primary> <ping-sent> <pong-recv> <config-epoch>
//		<link-state> <slot> …
//
// The bus port came with Redis 4, the hostname with 7.0, the pairs after it with 7.2. It is clusterGenNodeDescription
// in Redis' cluster.c. A text without nodes is ErrNoNodes: a node knows itself at least.
func ParseNodes(text string) (Map, error) {
	var m Map
	if len(text) > maxTextBytes {
		return m, fmt.Errorf("%w: CLUSTER NODES of %d bytes", ErrTooLarge, len(text))
	}
	number, ranges := 0, 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if line == "" || strings.HasPrefix(line, "vars ") {
			continue
		}
		n, err := parseNodeLine(line)
		if ranges += len(n.Ranges); err == nil && (ranges > maxRanges || len(m.Nodes) == maxNodes) {
			err = fmt.Errorf("%w: more than %d nodes or %d ranges of slots", ErrTooLarge, maxNodes, maxRanges)
		}
		if err != nil {
			return Map{}, located(fmt.Sprintf("line %d of CLUSTER NODES", number), err)
		}
		m.Nodes = append(m.Nodes, n)
	}
	if len(m.Nodes) == 0 {
		return m, ErrNoNodes
	}
	return m, nil
}

const nodeFields = 8 // before the slots

func parseNodeLine(line string) (Node, error) {
	if len(line) > maxLineBytes {
		return Node{}, fmt.Errorf("%w: a line of %d bytes", ErrTooLarge, len(line))
	}
	fields := strings.Fields(line)
	if len(fields) < nodeFields {
		return Node{}, fmt.Errorf("%d fields, want at least %d", len(fields), nodeFields)
	}
	n := Node{ID: fields[0], LinkConnected: fields[7] == "connected"}
	if err := n.parseAddress(fields[1]); err != nil {
		return Node{}, err
	}
	n.parseFlags(fields[2])
	if fields[3] != "-" {
		n.PrimaryID = fields[3]
	}
	var err error
	if n.Epoch, err = strconv.ParseUint(fields[6], 10, 64); err != nil {
		return Node{}, fmt.Errorf("config epoch %.40q", fields[6])
	}
	for _, field := range fields[nodeFields:] {
		if err := n.parseSlotField(field); err != nil {
			return Node{}, err
		}
	}
	return n, nil
}

// parseAddress parses ip:port@cport,hostname,key=value,…; the ip may be IPv6 without brackets, or empty if it is not
// known.
func (n *Node) parseAddress(field string) error {
	address, rest, _ := strings.Cut(field, ",")
	endpoint, bus, hasBus := strings.Cut(address, "@")
	colon := strings.LastIndexByte(endpoint, ':')
	if colon < 0 {
		return fmt.Errorf("address %.60q without a port", field)
	}
	n.Host = knownHost(strings.Trim(endpoint[:colon], "[]"))
	var ok bool
	if n.Port, ok = parsePort(endpoint[colon+1:]); !ok {
		return fmt.Errorf("port of address %.60q", field)
	}
	if hasBus {
		if n.BusPort, ok = parsePort(bus); !ok {
			return fmt.Errorf("bus port of address %.60q", field)
		}
	}
	if net.ParseIP(n.Host) != nil {
		n.IP = n.Host
	}
	hostname, rest, _ := strings.Cut(rest, ",")
	n.Hostname = knownHost(hostname)
	for pair := range strings.SplitSeq(rest, ",") {
		switch key, value, _ := strings.Cut(pair, "="); key {
		case "shard-id":
			n.ShardID = value
		case "tls-port":
			if n.TLSPort, ok = parsePort(value); !ok {
				return fmt.Errorf("TLS port of address %.60q", field)
			}
		}
	}
	return nil
}

// parseFlags parses the flags, such as myself,master. Forks that follow Valkey's wording may say primary and replica.
func (n *Node) parseFlags(field string) {
	if field == "noflags" {
		return
	}
	n.Flags = strings.Split(field, ",")
	n.Primary = n.HasFlag("master") || n.HasFlag("primary")
}

// parseSlotField parses 5461, 0-5460, [93->-id] (migrating to) or [93-<-id] (importing from).
func (n *Node) parseSlotField(field string) error {
	if inner, ok := strings.CutPrefix(field, "["); ok {
		inner, closed := strings.CutSuffix(inner, "]")
		if slot, id, ok := strings.Cut(inner, "->-"); ok && closed {
			return appendMove(&n.Migrating, slot, id)
		}
		if slot, id, ok := strings.Cut(inner, "-<-"); ok && closed {
			return appendMove(&n.Importing, slot, id)
		}
		return fmt.Errorf("moving slot %.60q", field)
	}
	from, to, isRange := strings.Cut(field, "-")
	if !isRange {
		to = from
	}
	first, ok := parseSlot(from)
	last, alsoOK := parseSlot(to)
	if !ok || !alsoOK || first > last {
		return fmt.Errorf("slots %.40q", field)
	}
	n.Ranges = append(n.Ranges, Range{first, last})
	return nil
}

func appendMove(moves *[]Move, slot, id string) error {
	number, ok := parseSlot(slot)
	if !ok || id == "" {
		return fmt.Errorf("moving slot %.40q", slot)
	}
	*moves = append(*moves, Move{number, id})
	return nil
}

func parseSlot(text string) (uint16, bool) {
	n, err := strconv.ParseUint(text, 10, 16)
	return uint16(n), err == nil && n < SlotCount
}

func parsePort(text string) (int, bool) {
	n, err := strconv.ParseUint(text, 10, 16)
	return int(n), err == nil
}

// knownHost replaces "?", the unknown host of a reply, by an empty one.
func knownHost(host string) string {
	if host == "?" {
		return ""
	}
	return host
}
