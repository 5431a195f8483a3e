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

// sockets looks at some of the generator's sockets, and at the servers' ends of them where those are on this host.
type sockets struct {
	ports  map[uint16]bool // of the servers
	places []*place
	served map[*node]*served
	next   int64
	pause  time.Duration

	reading series[socketSums]
	minRTT  time.Duration
	looks   float64
	queued  float64
}

// place is a network namespace. The first look walks through its whole table, which takes long on a host with many
// sockets; later ones ask for those of the generator's connections that were seen then, or that the generator told of.
type place struct {
	table  host.SocketTable
	own    bool            // the generator's sockets are in it
	served map[int]*served // the servers in it, by port
	known  []host.Ends
	found  int
}

// served are the sockets of one server. Those of a look are seen and waiting.
type served struct {
	looks, queued float64
	seen, waiting int
}

// socketSums are sums over the sockets of one look.
type socketSums struct {
	sockets     int
	queued      int
	retransmits int64
	limited     time.Duration
}

// mostSockets of each side are looked at. To ask for one takes 2 µs.
const mostSockets = 128

// fewestLooks: the first is before the load, and the last after it.
const fewestLooks = 3

const established = 1 // TCP_ESTABLISHED, include/net/tcp_states.h

func openSockets(fs host.FS, nodes []*node) *sockets {
	s := &sockets{ports: map[uint16]bool{}, served: map[*node]*served{}}
	others := map[string]*place{}
	own := &place{own: true, served: map[int]*served{}}
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
				p = s.open(fs, n.process.PID, &place{served: map[int]*served{}})
				others[n.process.NetNS] = p
			}
		}
		if p.served[n.process.Port] == nil {
			p.served[n.process.Port] = &served{}
		}
		s.served[n] = p.served[n.process.Port]
	}
	if len(s.ports) > 0 {
		s.open(fs, os.Getpid(), own)
	}
	return s
}

// open opens the table of the process's namespace. What may not be seen stays unknown.
func (s *sockets) open(fs host.FS, pid int, p *place) *place {
	if table, err := fs.Sockets(pid); err == nil {
		p.table = table
		s.places = append(s.places, p)
	}
	return p
}

func (s *sockets) close() {
	for _, p := range s.places {
		p.table.Close()
	}
}

// read looks at the sockets when it is time.
func (s *sockets) read(now int64, all bool) {
	if !all && now < s.next {
		return
	}
	s.pause = min(max(2*s.pause, socketEvery), socketMost)
	s.next = now + int64(s.pause)
	for _, p := range s.places {
		s.look(p, now)
	}
}

// look looks at the sockets of a place.
func (s *sockets) look(p *place, now int64) {
	var sums socketSums
	p.found = 0
	take := func(k *host.Socket) { s.take(p, &sums, k) }
	if p.known != nil {
		_ = p.table.Find(p.known, take)
	}
	if p.found <= len(p.known)/2 { // connections come and go
		p.forget(&sums)
		_ = p.table.Visit(host.SocketQuery{States: 1 << established, Info: true}, func(k *host.Socket) bool {
			if s.take(p, &sums, k) && len(p.known) < 2*mostSockets {
				p.known = append(p.known, host.Ends{Local: k.Local, Remote: k.Remote})
			}
			return true
		})
	}
	for _, x := range p.served {
		x.looked()
	}
	if sums.sockets > 0 {
		s.looks++
		s.queued += float64(sums.queued) / float64(sums.sockets)
		s.reading.add(now, sums)
	}
}

// forget begins a look again.
func (p *place) forget(sums *socketSums) {
	p.known, p.found, *sums = p.known[:0], 0, socketSums{}
	for _, x := range p.served {
		x.seen, x.waiting = 0, 0
	}
}

// know takes the generator's connections, so that nobody has to look for them.
func (s *sockets) know(connections []host.Ends) {
	for _, p := range s.places {
		p.known = nil
		for _, e := range connections {
			if p.own {
				p.known = append(p.known, e)
			}
			if p.served[int(e.Remote.Port())] != nil {
				p.known = append(p.known, e.Other())
			}
		}
	}
}

// endsOf gives the ends of some of the TCP sockets among descriptors of this process.
func endsOf(fds []int) (list []host.Ends) {
	for i := range min(len(fds), mostSockets) {
		fd := fds[i*len(fds)/min(len(fds), mostSockets)]
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

// addrPort is not valid for what is no address of TCP.
func addrPort(a unix.Sockaddr) netip.AddrPort {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port))
	}
	return netip.AddrPort{}
}

// take counts a socket if it is of the generator's connections, and tells whether it is.
func (s *sockets) take(p *place, sums *socketSums, k *host.Socket) bool {
	if x := p.served[int(k.Local.Port())]; x != nil {
		p.found++
		x.add(k)
		return true
	}
	if !p.own || !k.HasInfo || !s.ports[k.Remote.Port()] {
		return false
	}
	p.found++
	if sums.sockets < mostSockets {
		s.add(sums, k)
	}
	return true
}

// add takes one of the generator's sockets.
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

// add takes one of a server's sockets.
func (x *served) add(k *host.Socket) {
	if x.seen == mostSockets {
		return
	}
	if x.seen++; k.NotsentBytes > 0 {
		x.waiting++
	}
}

// looked ends a look.
func (x *served) looked() {
	if x.seen > 0 {
		x.looks++
		x.queued += float64(x.waiting) / float64(x.seen)
	}
	x.seen, x.waiting = 0, 0
}

// network is what the sockets tell of the way.
func (s *sockets) network(endNs int64, window time.Duration) bottleneck.Network {
	n := bottleneck.Network{MinRTT: s.minRTT}
	if s.looks >= fewestLooks {
		n.Queued = s.queued / (s.looks - 2)
	}
	from, to, scale, ok := s.reading.span(endNs, window)
	if !ok || window <= 0 {
		return n
	}
	n.Retransmits = max(0, to.retransmits-from.retransmits) // connections that were closed meanwhile take theirs along
	n.RwndLimited = max(0, scale*(to.limited-from.limited).Seconds()/window.Seconds()/float64(to.sockets))
	return n
}

// repliesQueued is the share of a server's sockets that had replies waiting to be sent, on average; -1 where they
// cannot be seen.
func (s *sockets) repliesQueued(n *node) float64 {
	x := s.served[n]
	if x == nil || x.looks < fewestLooks {
		return -1
	}
	return x.queued / (x.looks - 2)
}
