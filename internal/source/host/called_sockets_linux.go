package host

import (
	"errors"
	"maps"
	"net/netip"
)

// calledSockets are the sockets of this host to the ports of servers.
type calledSockets struct {
	tables  []SocketTable
	ports   []int
	sockets map[uint64]calledSocket // by inode
	owners  map[uint64]int          // their processes, as far as they are known
	others  map[uint64]string       // others that threads were seen at, see readOthers
}

// calledSocket is what one of them does.
type calledSocket struct {
	remote   netip.AddrPort
	server   bool // it is to a server that is watched
	dialling bool // its other end has not answered yet
}

// openTables opens the socket tables of all network namespaces.
func openTables(fs FS) (out []SocketTable, err error) {
	spaces, err := netSpaces(fs)
	if err != nil {
		return nil, err
	}
	for _, s := range spaces[:min(len(spaces), maxSpaces)] {
		if table, err := fs.Sockets(s.pid); err == nil {
			out = append(out, table)
		}
	}
	return out, nil
}

// portsOf are the ports of addresses, each once.
func portsOf(nodes map[netip.AddrPort]string) (out []int) {
	seen := map[int]bool{}
	for a := range nodes {
		if p := int(a.Port()); !seen[p] {
			seen[p] = true
			out = append(out, p)
		}
	}
	return out
}

// readSockets reads what the sockets do now. After an error some are missing.
func (c *calledSockets) readSockets(nodes map[netip.AddrPort]string) (err error) {
	clear(c.sockets)
	for _, table := range c.tables {
		for _, port := range c.ports {
			q := SocketQuery{States: 1<<tcpEstablished | 1<<tcpSynSent, RemotePort: port}
			err = errors.Join(err, table.Visit(q, func(s *Socket) bool {
				if to := unmapped(s.Remote); s.Inode != 0 && int(to.Port()) == port {
					dialling := s.State == tcpSynSent
					c.sockets[s.Inode] = calledSocket{remote: to, server: nodes[to] != "", dialling: dialling}
				}
				return len(c.sockets) < maxInodes
			}))
		}
	}
	maps.DeleteFunc(c.owners, func(inode uint64, _ int) bool {
		_, there := c.sockets[inode]
		return !there
	})
	return err
}

// unowned is of how many sockets the process is not known.
func (c *calledSockets) unowned() int { return len(c.sockets) - len(c.owners) }

// readOthers finds which services these sockets are connected to, by inode; empty: to one that calls this process, or
// that is not known. A service listens at the lower port: those of its callers are from 32768 on (ip_local_port_range).
func (c *calledSockets) readOthers(others map[uint64]string) {
	for _, table := range c.tables {
		// what is missing after an error stays unknown
		_ = table.Visit(SocketQuery{States: 1 << tcpEstablished}, func(s *Socket) bool {
			if _, asked := others[s.Inode]; asked && s.Remote.Port() < s.Local.Port() {
				others[s.Inode] = unmapped(s.Remote).String()
			}
			return true
		})
	}
}
