package host

import "net/netip"

// States of TCP sockets as in the kernel (include/net/tcp_states.h).
const (
	tcpEstablished = 1
	tcpSynSent     = 2
	tcpTimeWait    = 6
	tcpListen      = 10
)

// SocketQuery selects sockets.
type SocketQuery struct {
	States     uint32 // bit mask, 1<<state; all when 0
	LocalPort  int    // all when 0
	RemotePort int    // all when 0, or where LocalPort is set
	Info       bool   // with TCP_INFO, where sock_diag can be used
}

// UnixSocket is a stream socket with a path: that of the server that listens at it, or its end of a connection.
type UnixSocket struct {
	Inode     uint64
	Peer      uint64 // inode of the other end; 0 where there is none
	Path      string
	Listening bool
}

// Queue is what waits in a queueing discipline of a network device to be sent.
type Queue struct {
	Device string
	Kind   string // "tbf", "fq_codel"
	Bytes  uint32
}

// Ends are the addresses of a connection, as one of its two ends sees them.
type Ends struct{ Local, Remote netip.AddrPort }

// Other is the connection as the other end sees it.
func (e Ends) Other() Ends { return Ends{e.Remote, e.Local} }

// Socket is a TCP socket of some network namespace. Times are nanoseconds.
type Socket struct {
	Local, Remote netip.AddrPort
	State         uint8
	Inode         uint64
	RecvQ         uint32 // bytes not read yet; for a listener, connections not accepted yet
	SendQ         uint32 // bytes not acknowledged yet; for a listener, its backlog
	Timer         uint8  // 1 retransmission, 2 keepalive, 4 zero window probe
	Retransmits   uint8  // in a row, of the segment that is in flight now

	HasInfo       bool
	TotalRetrans  uint32
	Unacked       uint32
	NotsentBytes  uint32
	RTTNs         int64
	MinRTTNs      int64
	RwndLimitedNs int64
	SentAgoNs     int64 // since the last segment with data was sent or retransmitted
	ReceivedAgoNs int64 // since data was last received; since the kernel's start where none ever was
	RTONs         int64 // retransmission timeout as it is now: doubled with each retransmission of a segment
	Backoff       uint8 // how often it was doubled
	AckedAgoNs    int64 // since an acknowledgement was last received
	SendMSS       uint32
	BytesAcked    uint64
	Delivered     uint32 // segments with data that the other end has
	DataSegsOut   uint32
	DataSegsIn    uint32
}
