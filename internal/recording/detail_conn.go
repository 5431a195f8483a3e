package recording

// ConnDetail is the Detail of open and close. Durations are those at the time of the event.
type ConnDetail struct {
	Client string `json:"client"` // its address
	PID    int    `json:"pid,omitempty"`
	Comm   string `json:"comm,omitempty"`
	Side   string `json:"side"` // which end was seen: server, client
	// client: from the SYN to the established connection, or to the failure (age 0); 0 if unknown
	DialNs     int64  `json:"dial_ns"`
	AgeNs      int64  `json:"age_ns"`       // 0 if it was opened before the watch
	IdleNs     int64  `json:"idle_ns"`      // since the last byte in either direction
	Calls      int64  `json:"calls"`        // with a reply
	InFlightNs int64  `json:"in_flight_ns"` // time with at least one call in flight
	By         string `json:"by,omitempty"` // close: client, server; empty if neither closed it, or unknown
	// close: from the FIN of the other end, which closed it first, to this event; 0: no FIN came
	NoticedNs int64 `json:"noticed_ns,omitempty"`
	// close: how long it had been idle when that FIN came, and how many calls had no reply by then. Others were sent
	// when it was closed already.
	PeerIdleNs  int64  `json:"peer_idle_ns,omitempty"`
	PeerWaiting int    `json:"peer_waiting,omitempty"`
	Reason      string `json:"reason,omitempty"`   // close: one of Close…; empty for a regular close by FIN
	Waiting     int    `json:"waiting,omitempty"`  // close: calls without a reply,
	Op          string `json:"op,omitempty"`       // the first of them, if known,
	OpBytes     int64  `json:"op_bytes,omitempty"` // the size of its request,
	Blocking    bool   `json:"blocking,omitempty"` // and whether it waits by design
	Nagle       string `json:"nagle,omitempty"`    // close, client: one of Nagle…; empty if unknown
}

// UnansweredDial is the Detail of unanswered-dial. The event is as long as the dial was seen.
type UnansweredDial struct {
	To    string `json:"to"`              // address
	Calls bool   `json:"calls,omitempty"` // a connection of the process to a server was seen
}

// Whether the kernel of a client holds a small segment back while another is not acknowledged: not with TCP_NODELAY.
const (
	NagleOn  = "on"
	NagleOff = "off"
)

// Reasons of a close.
const (
	CloseReset       = "reset"       // by RST
	CloseRefused     = "refused"     // no process listens on the port
	CloseTimedOut    = "timed-out"   // TCP gave up: no answer to retransmissions or keepalive
	CloseUnreachable = "unreachable" // no route or no host (ICMP, ARP)
	CloseAborted     = "aborted"     // killed on this host (ss -K)
)

// HandshakeDetail is the Detail of handshake; the event lasts from the SYN (or the accept) to the reply of Op.
type HandshakeDetail struct {
	Client string   `json:"client"`
	PID    int      `json:"pid,omitempty"`
	Comm   string   `json:"comm,omitempty"`
	Side   string   `json:"side"`
	DialNs int64    `json:"dial_ns"`
	Ops    []string `json:"ops"` // AUTH, HELLO, CLIENT SETINFO, SELECT, …, in order
	// The client library by CLIENT SETINFO, whether the server knows that command or not: the first eight bytes of
	// each, in lower case.
	Library string `json:"library,omitempty"`
	Version string `json:"version,omitempty"`

	RoundTrips int   `json:"trips"`            // round trips that Ops took, one after the other
	TLSNs      int64 `json:"tls_ns,omitempty"` // for replies to the flights of the TLS handshake before them
	// from the last reply to Ops to the request of Op: long if no call waited for the connection
	IdleNs int64  `json:"rest_ns"`
	Op     string `json:"op"`                 // the first real command
	Bytes  int64  `json:"op_bytes,omitempty"` // of its request
}

// RetransmitDetail is the Detail of retransmit. The event begins with the last send before it.
type RetransmitDetail struct {
	Client  string `json:"client"`
	From    string `json:"from"`  // which end retransmitted: server, client
	State   string `json:"state"` // "established", "syn-sent", …
	Why     string `json:"why"`   // one of Resent…
	Unacked int64  `json:"unacked_bytes"`
	Total   int64  `json:"total"` // retransmissions of this end of the connection so far
	// Duplicates is how many segments of this end its peer has received twice so far (DSACK): spurious retransmissions.
	Duplicates int64 `json:"duplicates"`
}

// Spurious reports whether nobody waited for the retransmission. Tail loss probes come early, after two round trips. If
// acknowledgements are often late, such as on fully used CPUs, most of the probed segments have arrived: the peer
// reports them as duplicates.
func (d RetransmitDetail) Spurious() bool {
	return d.Why == RetransmitTailProbe && d.Total > 1 && 2*d.Duplicates+1 >= d.Total
}

// Why TCP retransmitted.
const (
	RetransmitTimeout   = "timer" // no acknowledgement within the retransmission timeout (RTO)
	RetransmitFast      = "acks"  // acknowledgements of later segments show that this one is missing
	RetransmitTailProbe = "probe" // tail loss probe (TLP)
)

// AckDetail is the Detail of acknowledged. The client's kernel acknowledges, not its process; it may delay the
// acknowledgement of a single last segment (delayed ACK).
type AckDetail struct {
	Client string `json:"client"`
	// from the first byte that was not acknowledged when the reply was sent, to the end of the reply
	Unacked       int64 `json:"unacked_bytes"`
	MinWaitNs     int64 `json:"sure_ns"` // the part of the duration that a delayed ACK cannot explain
	Retransmitted int64 `json:"resent"`  // segments that the server retransmitted meanwhile
	// the client has advertised a zero window since its request came
	WindowClosed bool `json:"window_closed,omitempty"`
	// minimum round trip of the connection in the last minutes; 0 if unknown
	RTTMinNs int64 `json:"rtt_min_ns"`
}

// RequestAckDetail is the Detail of request-acknowledged: the server's kernel had the request of a slow call, and its
// process had not answered.
type RequestAckDetail struct {
	Client string `json:"client"`
	Op     string `json:"op"`
	// ReplyNs is from the acknowledgement to the first byte of the reply.
	ReplyNs int64 `json:"reply_ns"`
	// Delayed says that the acknowledgement came as late as the kernel's timer for delayed ones (40 ms): the kernel was
	// running when it expired, and waited for the process until then.
	Delayed bool `json:"delayed,omitempty"`
}
