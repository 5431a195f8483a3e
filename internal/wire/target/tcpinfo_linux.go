package target

import (
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// TCPInfo asks the kernel for the state of the connection. On a unix socket the error is ErrNotSupported.
func (c *Conn) TCPInfo() (TCPInfo, error) {
	if c.target.Network != "tcp" {
		return TCPInfo{}, errNoTCPInfo
	}
	var (
		info   *unix.TCPInfo
		failed error
	)
	err := c.wire.raw.Control(func(fd uintptr) {
		info, failed = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return TCPInfo{}, fmt.Errorf("reading TCP_INFO of %s: %w", c.target.Addr(), err)
	}
	return fromKernel(info), nil
}

func fromKernel(k *unix.TCPInfo) TCPInfo {
	info := TCPInfo{
		State: nameOf(tcpStates, k.State), CAState: nameOf(caStates, k.Ca_state),
		RTT: micros(k.Rtt), RTTVar: micros(k.Rttvar), RTO: micros(k.Rto),
		Retransmits: uint32(k.Retransmits), TotalRetrans: k.Total_retrans, Duplicates: k.Dsack_dups, Lost: k.Lost,
		Unacked: k.Unacked,
		SndCwnd: k.Snd_cwnd, SndMSS: k.Snd_mss,
		LastDataSent: millis(k.Last_data_sent), LastDataRecv: millis(k.Last_data_recv),
		LastAckRecv:  millis(k.Last_ack_recv),
		NotsentBytes: k.Notsent_bytes, BusyTime: micros(k.Busy_time), RwndLimited: micros(k.Rwnd_limited),
		SndbufLimited: micros(k.Sndbuf_limited), DeliveryRate: k.Delivery_rate,
		BytesSent: k.Bytes_sent, BytesRetrans: k.Bytes_retrans,
	}
	if k.Min_rtt != math.MaxUint32 { // that is "none yet": tcp_min_rtt starts at ~0U
		info.MinRTT = micros(k.Min_rtt)
	}
	return info
}

func micros[N uint32 | uint64](n N) time.Duration { return time.Duration(n) * time.Microsecond }

func millis(n uint32) time.Duration { return time.Duration(n) * time.Millisecond }

// tcpStates and caStates are the enums of include/net/tcp_states.h (from 1) and include/uapi/linux/tcp.h.
var (
	tcpStates = []string{
		"", "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2", "TIME_WAIT", "CLOSE",
		"CLOSE_WAIT", "LAST_ACK", "LISTEN", "CLOSING", "NEW_SYN_RECV",
	}
	caStates = []string{"Open", "Disorder", "CWR", "Recovery", "Loss"}
)

func nameOf(names []string, i uint8) string {
	if int(i) < len(names) {
		return names[i]
	}
	return fmt.Sprintf("unknown(%d)", i)
}
