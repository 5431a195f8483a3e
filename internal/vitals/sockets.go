//go:build linux

package vitals

import (
	"net/netip"
	"os"
	"time"

	"slowpath/internal/host"
	"slowpath/internal/limit"
)

// sockets looks at some of the generator's sockets, and at the servers' ends of them where those are on this host.
type sockets struct {
	own    host.SocketTable // nil: no TCP, or not to be seen
	ports  map[uint16]bool  // of the servers
	served map[*node]*served
	next   int64
	pause  time.Duration

	reading series[socketSums]
	minRTT  time.Duration
	looks   float64
	queued  float64
}

// served are the sockets of one server.
type served struct {
	table         host.SocketTable
	port          int
	looks, queued float64
}

// socketSums are sums over the sockets of one look.
type socketSums struct {
	sockets     int
	queued      int
	retransmits int64
	limited     time.Duration
}

// mostSockets of each side are looked at: a look takes about 1 µs for each.
const mostSockets = 512

// fewestLooks: the first is before the load, and the last after it.
const fewestLooks = 3

const established = 1 // TCP_ESTABLISHED, include/net/tcp_states.h

func openSockets(fs host.FS, nodes []*node) *sockets {
	s := &sockets{ports: map[uint16]bool{}, served: map[*node]*served{}}
	for _, n := range nodes {
		a, err := netip.ParseAddrPort(n.address)
		if err == nil {
			s.ports[a.Port()] = true
		}
		if n.process == nil || n.process.Port == 0 {
			continue
		}
		s.ports[uint16(n.process.Port)] = true
		if table, err := fs.Sockets(n.process.PID); err == nil {
			s.served[n] = &served{table: table, port: n.process.Port}
		}
	}
	if len(s.ports) > 0 {
		s.own, _ = fs.Sockets(os.Getpid()) // what may not be seen stays unknown
	}
	return s
}

func (s *sockets) close() {
	if s.own != nil {
		s.own.Close()
	}
	for _, x := range s.served {
		x.table.Close()
	}
}

// read looks at the sockets when it is time.
func (s *sockets) read(now int64, all bool) {
	if !all && now < s.next {
		return
	}
	s.pause = min(max(2*s.pause, socketEvery), socketMost)
	s.next = now + int64(s.pause)
	if s.own != nil {
		s.lookAtOwn(now)
	}
	for _, x := range s.served {
		queued, n := 0, 0
		_ = x.table.Visit(host.SocketQuery{States: 1 << established, LocalPort: x.port, Info: true}, func(k *host.Socket) bool {
			if n++; k.NotsentBytes > 0 {
				queued++
			}
			return n < mostSockets
		})
		if n > 0 {
			x.looks++
			x.queued += float64(queued) / float64(n)
		}
	}
}

func (s *sockets) lookAtOwn(now int64) {
	var sums socketSums
	_ = s.own.Visit(host.SocketQuery{States: 1 << established, Info: true}, func(k *host.Socket) bool {
		if !s.ports[k.Remote.Port()] || !k.HasInfo {
			return true
		}
		sums.sockets++
		if k.NotsentBytes > 0 {
			sums.queued++
		}
		sums.retransmits += int64(k.TotalRetrans)
		sums.limited += time.Duration(k.RwndLimitedNs)
		if rtt := time.Duration(k.MinRTTNs); rtt > 0 && (s.minRTT == 0 || rtt < s.minRTT) {
			s.minRTT = rtt
		}
		return sums.sockets < mostSockets
	})
	if sums.sockets > 0 {
		s.looks++
		s.queued += float64(sums.queued) / float64(sums.sockets)
		s.reading.add(now, sums)
	}
}

// network is what the sockets tell of the way.
func (s *sockets) network(endNs int64, window time.Duration) limit.Network {
	n := limit.Network{MinRTT: s.minRTT}
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

// repliesQueued is the share of a server's sockets that had replies waiting to be sent, on average; -1 where they cannot be seen.
func (s *sockets) repliesQueued(n *node) float64 {
	x := s.served[n]
	if x == nil || x.looks < fewestLooks {
		return -1
	}
	return x.queued / (x.looks - 2)
}
