package host

import "net/netip"

// States of TCP sockets as in the kernel (include/net/tcp_states.h).
const (
	tcpEstablished = 1
	tcpTimeWait    = 6
	tcpListen      = 10
)

// SocketQuery selects sockets.
type SocketQuery struct {
	States     uint32 // bit mask, 1<<state; all when 0
	LocalPort  int    // all when 0
	RemotePort int    // all when 0, or where LocalPort is set
	Info       bool   // with TCP_INFO, where the way of reading has it
}

// Ends are the two ends of a connection, as one of them has them.
type Ends struct{ Local, Remote netip.AddrPort }

// Other is as the other end has them.
func (e Ends) Other() Ends { return Ends{e.Remote, e.Local} }

// Socket is a TCP socket of some network namespace. Times are nanoseconds.
type Socket struct {
	Local, Remote netip.AddrPort
	State         uint8
	Inode         uint64
	RecvQ         uint32 // bytes not read yet; for a listener, connections not accepted yet
	SendQ         uint32 // bytes not acknowledged yet; for a listener, its backlog
	Timer         uint8  // 1 retransmission, 2 keepalive, 4 zero window probe
	Retransmits   uint8  // of the packet that is out now

	HasInfo       bool
	TotalRetrans  uint32
	Unacked       uint32
	NotsentBytes  uint32
	RTTNs         int64
	MinRTTNs      int64
	RwndLimitedNs int64
	SentAgoNs     int64 // since the last segment with data was sent, or sent again
	ReceivedAgoNs int64 // since data came last; a connection that never had any counts from the kernel's start
	RTONs         int64 // the retransmission timer as it is now: doubled each time that
	Backoff       uint8 // the same segment was sent again
	AckedAgoNs    int64 // since an acknowledgement came last
	DataSegsOut   uint32
	DataSegsIn    uint32
}
