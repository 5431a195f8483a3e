package target

import (
	"fmt"
	"time"
)

// TCPInfo is the kernel's state of one connection (getsockopt TCP_INFO; include/uapi/linux/tcp.h, net/ipv4/tcp.c
// tcp_get_info). A kernel that is older than a field leaves it 0.
type TCPInfo struct {
	State   string `json:"state"`    // ESTABLISHED, CLOSE_WAIT, …
	CAState string `json:"ca_state"` // of congestion control: Open, Disorder, CWR, Recovery, Loss

	// smoothed, of the segments this side sent; delayed acknowledgements included
	RTT    time.Duration `json:"rtt_ns"`
	RTTVar time.Duration `json:"rttvar_ns"` // its mean deviation
	// the least over five minutes (net.ipv4.tcp_min_rtt_wlen); 0 before the first measurement. Linux 4.6
	MinRTT time.Duration `json:"min_rtt_ns"`
	RTO    time.Duration `json:"rto_ns"` // retransmission timeout as it is now, at least 200 ms by default

	Retransmits  uint32 `json:"retransmits"`   // timeouts in a row for the segment now in flight; 0 is normal
	TotalRetrans uint32 `json:"total_retrans"` // segments retransmitted since the connection began
	// of those, the spurious ones: the peer reported that it received them twice (DSACK). Linux 5.5
	Duplicates uint32 `json:"duplicates"`
	Lost       uint32 `json:"lost"`     // segments that the kernel now takes for lost
	Unacked    uint32 `json:"unacked"`  // segments now in flight
	SndCwnd    uint32 `json:"snd_cwnd"` // congestion window, segments
	SndMSS     uint32 `json:"snd_mss_bytes"`

	LastDataSent time.Duration `json:"last_data_sent_ns"` // ago, in steps of 1 ms
	LastDataRecv time.Duration `json:"last_data_recv_ns"` // ago, in steps of 1 ms
	LastAckRecv  time.Duration `json:"last_ack_recv_ns"`  // ago, in steps of 1 ms

	NotsentBytes  uint32        `json:"notsent_bytes"`     // written and not sent yet. Linux 4.6
	BusyTime      time.Duration `json:"busy_time_ns"`      // total time with data to send or in flight. Linux 4.10
	RwndLimited   time.Duration `json:"rwnd_limited_ns"`   // of it, stopped by the peer's receive window. Linux 4.10
	SndbufLimited time.Duration `json:"sndbuf_limited_ns"` // of it, stopped by this side's send buffer. Linux 4.10
	DeliveryRate  uint64        `json:"delivery_rate_bytes_per_second"`
	BytesSent     uint64        `json:"bytes_sent"`    // with retransmissions. Linux 4.19
	BytesRetrans  uint64        `json:"bytes_retrans"` // retransmitted. Linux 4.19
}

var errNoTCPInfo = fmt.Errorf("TCP_INFO: %w: it needs Linux and a TCP connection", ErrNotSupported)
