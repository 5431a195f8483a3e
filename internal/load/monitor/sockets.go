//go:build linux

package monitor

import (
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"slowpath/internal/load/bottleneck"
	"slowpath/internal/source/host"
)

// sockets polls some of the generator's sockets, and the servers' ends of them where these are on this host.
type sockets struct {
	ports      map[uint16]bool // of the servers
	namespaces []*namespace
	servers    map[*node]*serverSockets
	next       int64
	pause      time.Duration

	reading series[socketSums]
	minRTT  time.Duration
	polls   float64
	queued  float64
}

// namespace is a network namespace. The first poll walks its whole table, which takes long on a host with many sockets.
// Later ones ask for the connections that the first one found, or that the generator named.
type namespace struct {
	table   host.SocketTable
	own     bool                   // the generator's sockets are in it
	servers map[int]*serverSockets // the servers in it, by port
	known   []host.Ends
	found   int
}

// serverSockets are the sockets of one server; polled and polledQueued count those of the current poll.
type serverSockets struct {
	polls, queued        float64
	polled, polledQueued int
}

// socketSums are sums over the sockets of one poll.
type socketSums struct {
	sockets     int
	queued      int
	retransmits int64
	limited     time.Duration
}

// maxSockets of each side are polled. To ask for one takes 2 µs.
const maxSockets = 128

// minPolls: the first is before the load, and the last after it.
const minPolls = 3

const established = 1 // TCP_ESTABLISHED, include/net/tcp_states.h

func openSockets(fs host.FS, nodes []*node) *sockets {
	s := &sockets{ports: map[uint16]bool{}, servers: map[*node]*serverSockets{}}
	others := map[string]*namespace{}
	own := &namespace{own: true, servers: map[int]*serverSockets{}}
	for _, n := range nodes {
		a, err := netip.ParseAddrPort(n.address)
		if err == nil {
			s.ports[a.Port()] = true
		}
		if n.process == nil || n.process.Port == 0 {
			continue
		}
		s.ports[uint16(n.process.Port)] = true
		p := own
		if !n.process.OwnNet {
			if p = others[n.process.NetNS]; p == nil {
				p = s.open(fs, n.process.PID, &namespace{servers: map[int]*serverSockets{}})
				others[n.process.NetNS] = p
			}
		}
		if p.servers[n.process.Port] == nil {
			p.servers[n.process.Port] = &serverSockets{}
		}
		s.servers[n] = p.servers[n.process.Port]
	}
	if len(s.ports) > 0 {
		s.open(fs, os.Getpid(), own)
	}
	return s
}

// open opens the table of the process's namespace. Without the permission the namespace is left out.
func (s *sockets) open(fs host.FS, pid int, p *namespace) *namespace {
	if table, err := fs.Sockets(pid); err == nil {
		p.table = table
		s.namespaces = append(s.namespaces, p)
	}
	return p
}

func (s *sockets) close() {
	for _, p := range s.namespaces {
		p.table.Close()
	}
}

// read polls the sockets when it is time.
func (s *sockets) read(now int64, all bool) {
	if !all && now < s.next {
		return
	}
	s.pause = min(max(2*s.pause, socketEvery), maxSocketEvery)
	s.next = now + int64(s.pause)
	for _, p := range s.namespaces {
		s.poll(p, now)
	}
}

// poll reads the sockets of a namespace.
func (s *sockets) poll(p *namespace, now int64) {
	var sums socketSums
	p.found = 0
	take := func(k *host.Socket) { s.count(p, &sums, k) }
	if p.known != nil {
		_ = p.table.Find(p.known, take)
	}
	if p.found <= len(p.known)/2 { // connections come and go
		p.restart(&sums)
		_ = p.table.Visit(host.SocketQuery{States: 1 << established, Info: true}, func(k *host.Socket) bool {
			if s.count(p, &sums, k) && len(p.known) < 2*maxSockets {
				p.known = append(p.known, host.Ends{Local: k.Local, Remote: k.Remote})
			}
			return true
		})
	}
	for _, x := range p.servers {
		x.endPoll()
	}
	if sums.sockets > 0 {
		s.polls++
		s.queued += float64(sums.queued) / float64(sums.sockets)
		s.reading.add(now, sums)
	}
}

// restart begins the poll again, without known connections.
func (p *namespace) restart(sums *socketSums) {
	p.known, p.found, *sums = p.known[:0], 0, socketSums{}
	for _, x := range p.servers {
		x.polled, x.polledQueued = 0, 0
	}
}

// setConnections names the generator's connections, so that they need not be searched.
func (s *sockets) setConnections(connections []host.Ends) {
	for _, p := range s.namespaces {
		p.known = nil
		for _, e := range connections {
			if p.own {
				p.known = append(p.known, e)
			}
			if p.servers[int(e.Remote.Port())] != nil {
				p.known = append(p.known, e.Other())
			}
		}
	}
}

// endsOf gives the ends of some of the TCP sockets among descriptors of this process.
func endsOf(fds []int) (list []host.Ends) {
	for i := range min(len(fds), maxSockets) {
		fd := fds[i*len(fds)/min(len(fds), maxSockets)]
		local, err1 := unix.Getsockname(fd)
		remote, err2 := unix.Getpeername(fd)
		if err1 != nil || err2 != nil {
			continue
		}
		if e := (host.Ends{Local: addrPort(local), Remote: addrPort(remote)}); e.Local.IsValid() && e.Remote.IsValid() {
			list = append(list, e)
		}
	}
	return list
}

// addrPort is invalid for what is not a TCP address.
func addrPort(a unix.Sockaddr) netip.AddrPort {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port))
	}
	return netip.AddrPort{}
}

// count counts a socket if it is one of the generator's connections, and says whether it is.
func (s *sockets) count(p *namespace, sums *socketSums, k *host.Socket) bool {
	if x := p.servers[int(k.Local.Port())]; x != nil {
		p.found++
		x.add(k)
		return true
	}
	if !p.own || !k.HasInfo || !s.ports[k.Remote.Port()] {
		return false
	}
	p.found++
	if sums.sockets < maxSockets {
		s.add(sums, k)
	}
	return true
}

// add adds one of the generator's sockets.
func (s *sockets) add(sums *socketSums, k *host.Socket) {
	sums.sockets++
	if k.NotsentBytes > 0 {
		sums.queued++
	}
	sums.retransmits += int64(k.TotalRetrans)
	sums.limited += time.Duration(k.RwndLimitedNs)
	if rtt := time.Duration(k.MinRTTNs); rtt > 0 && (s.minRTT == 0 || rtt < s.minRTT) {
		s.minRTT = rtt
	}
}

// add adds one of a server's sockets.
func (x *serverSockets) add(k *host.Socket) {
	if x.polled == maxSockets {
		return
	}
	if x.polled++; k.NotsentBytes > 0 {
		x.polledQueued++
	}
}

// endPoll adds the current poll to the sums.
func (x *serverSockets) endPoll() {
	if x.polled > 0 {
		x.polls++
		x.queued += float64(x.polledQueued) / float64(x.polled)
	}
	x.polled, x.polledQueued = 0, 0
}

// network is what the sockets show of the network.
func (s *sockets) network(endNs int64, window time.Duration) bottleneck.Network {
	n := bottleneck.Network{MinRTT: s.minRTT}
	if s.polls >= minPolls {
		n.RequestsQueued = s.queued / (s.polls - 2)
	}
	from, to, scale, ok := s.reading.span(endNs, window)
	if !ok || window <= 0 {
		return n
	}
	n.Retransmits = max(0, to.retransmits-from.retransmits) // counts of connections that were closed meanwhile are gone
	n.RwndLimited = max(0, scale*(to.limited-from.limited).Seconds()/window.Seconds()/float64(to.sockets))
	return n
}

// repliesQueued is the mean share of a server's sockets that had unsent replies; -1 where they cannot be seen.
func (s *sockets) repliesQueued(n *node) float64 {
	x := s.servers[n]
	if x == nil || x.polls < minPolls {
		return -1
	}
	return x.queued / (x.polls - 2)
}
