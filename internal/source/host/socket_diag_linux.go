package host

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// diag is a sock_diag netlink socket. It belongs to the namespace that it was made in, whichever thread uses it later.
type diag struct {
	fd  int
	seq uint32
	req []byte
	s   Socket

	route   *diag            // rtnetlink of the same namespace; nil where it cannot be had
	devices map[int32]string // names of the namespace's devices
}

// openDiag makes the socket in the network namespace of the process.
func openDiag(held *Spaces, pid int) (SocketTable, error) {
	fd, route, err := -1, -1, error(nil)
	inErr := held.in(pid, func() {
		fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
		if err == nil {
			route, _ = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
		}
	})
	if err = errors.Join(inErr, err); err != nil {
		return nil, fmt.Errorf("sock_diag in the network namespace of process %d: %w", pid, err)
	}
	d := &diag{fd: fd}
	timeout := unix.Timeval{Sec: 2}
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout)
	if route >= 0 {
		_ = unix.SetsockoptTimeval(route, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout)
		d.route = &diag{fd: route}
	}
	return d, nil
}

// diagBuffers are what dumps are read into, one after the other for many servers.
var diagBuffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

func (d *diag) Close() error {
	if d.route != nil {
		unix.Close(d.route.fd)
	}
	return unix.Close(d.fd)
}

// Visit dumps IPv4 and IPv6 at once. A dump walks the kernel's whole table, empty buckets too: 1 ms on a host with 24
// GiB, which has 262 144.
func (d *diag) Visit(want SocketQuery, visit func(*Socket) bool) error {
	d.request(want)
	return d.dump(func(body []byte) bool { return !parseDiag(body, &d.s) || visit(&d.s) })
}

// request fills d.req: nlmsghdr, inet_diag_req and, for a port, a filter that the kernel runs.
func (d *diag) request(want SocketQuery) {
	d.seq++
	header := unix.NlMsghdr{Type: tcpDiagGetSock, Flags: unix.NLM_F_REQUEST | unix.NLM_F_DUMP, Seq: d.seq}
	query := inetDiagReq{family: unix.AF_INET, states: want.States}
	if want.States == 0 {
		query.states = allStates
	}
	if want.Info {
		query.ext = 1 << (inetDiagInfo - 1)
	}
	b := appendStruct(appendStruct(d.req[:0], &header), &query)
	if want.LocalPort > 0 {
		b = appendPortFilter(b, uint16(want.LocalPort), inetDiagBCSGE, inetDiagBCSLE)
	} else if want.RemotePort > 0 {
		b = appendPortFilter(b, uint16(want.RemotePort), inetDiagBCDGE, inetDiagBCDLE)
	}
	binary.NativeEndian.PutUint32(b, uint32(len(b))) // nlmsg_len comes first
	d.req = b
}

// appendPortFilter adds the byte code "port >= p and port <= p" of one end: each operation {code, yes, no} is followed
// by one that holds the port in no; yes and no are jumps in bytes, and a jump 4 beyond the end rejects.
func appendPortFilter(b []byte, port uint16, atLeast, atMost uint8) []byte {
	b = binary.NativeEndian.AppendUint16(b, 4+16)
	b = binary.NativeEndian.AppendUint16(b, inetDiagReqBytecode)
	for i, code := range []uint8{atLeast, atMost} {
		b = append(b, code, 8)
		b = binary.NativeEndian.AppendUint16(b, uint16(16-8*i+4))
		b = append(b, 0, 0)
		b = binary.NativeEndian.AppendUint16(b, port)
	}
	return b
}

// dump sends d.req, and calls take for the body of each message of the reply, until it returns false.
func (d *diag) dump(take func(body []byte) bool) error {
	if err := d.send(); err != nil {
		return fmt.Errorf("sock_diag: %w", err)
	}
	more := true
	for done := false; !done; {
		err := d.replies(func(kind uint16, seq uint32, body []byte) error {
			switch {
			case seq != d.seq || done:
			case kind == unix.NLMSG_DONE:
				done = true
			case kind == unix.NLMSG_ERROR:
				return netlinkError(body)
			case more:
				// The rest of a dump that is not wanted any more is read and dropped: the socket stays in step.
				more = take(body)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("sock_diag: %w", err)
		}
	}
	return nil
}

func (d *diag) send() error {
	return unix.Sendto(d.fd, d.req, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
}

// replies reads once, and calls take for each message of what came.
func (d *diag) replies(take func(kind uint16, seq uint32, body []byte) error) error {
	buf := diagBuffers.Get().(*[32 << 10]byte)
	defer diagBuffers.Put(buf)
	n, _, err := unix.Recvfrom(d.fd, buf[:], 0)
	for err == unix.EINTR {
		n, _, err = unix.Recvfrom(d.fd, buf[:], 0)
	}
	if err != nil {
		return err
	}
	for b := buf[:n]; len(b) >= unix.NLMSG_HDRLEN; {
		size := int(binary.NativeEndian.Uint32(b))
		if size < unix.NLMSG_HDRLEN || size > len(b) {
			return errors.New("message with a wrong length")
		}
		kind, seq, body := binary.NativeEndian.Uint16(b[4:]), binary.NativeEndian.Uint32(b[8:]),
			b[unix.NLMSG_HDRLEN:size]
		b = b[min((size+3)&^3, len(b)):]
		if err := take(kind, seq, body); err != nil {
			return err
		}
	}
	return nil
}

func netlinkError(body []byte) error {
	if len(body) < 4 {
		return errors.New("error without a number")
	}
	return unix.Errno(-int32(binary.NativeEndian.Uint32(body)))
}

// parseDiag decodes struct inet_diag_msg and its attributes.
func parseDiag(b []byte, s *Socket) bool {
	var m inetDiagMsg
	if !takeStruct(b, &m) {
		return false
	}
	*s = Socket{
		State: m.state, Timer: m.timer, Retransmits: m.retrans, Inode: uint64(m.inode),
		Local:  netip.AddrPortFrom(diagAddr(m.family, m.id.src), binary.BigEndian.Uint16(m.id.sport[:])),
		Remote: netip.AddrPortFrom(diagAddr(m.family, m.id.dst), binary.BigEndian.Uint16(m.id.dport[:])),
		RecvQ:  m.rqueue, SendQ: m.wqueue,
	}
	attributes(b[unsafe.Sizeof(m):], func(kind uint16, value []byte) {
		if kind == inetDiagInfo {
			parseTCPInfo(value, s)
		}
	})
	return true
}

// attributes calls visit for each attribute of a message of netlink.
func attributes(b []byte, visit func(kind uint16, value []byte)) {
	for len(b) >= unix.SizeofNlAttr {
		size, kind := int(binary.NativeEndian.Uint16(b)), binary.NativeEndian.Uint16(b[2:])
		if size < unix.SizeofNlAttr || size > len(b) {
			break
		}
		visit(kind, b[unix.SizeofNlAttr:size])
		b = b[min((size+3)&^3, len(b)):]
	}
}

func diagAddr(family uint8, b [16]byte) netip.Addr {
	if family == unix.AF_INET {
		return netip.AddrFrom4([4]byte(b[:4]))
	}
	return netip.AddrFrom16(b).Unmap()
}

// parseTCPInfo takes struct tcp_info (include/uapi/linux/tcp.h) from the kernel's attribute. An older kernel gives a
// shorter one: what it lacks stays 0.
func parseTCPInfo(b []byte, s *Socket) {
	var k unix.TCPInfo
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&k)), unix.SizeofTCPInfo), b)
	s.HasInfo = true
	s.TotalRetrans, s.Unacked, s.NotsentBytes = k.Total_retrans, k.Unacked, k.Notsent_bytes
	s.SendMSS, s.BytesAcked, s.Delivered = k.Snd_mss, k.Bytes_acked, k.Delivered
	s.DataSegsOut, s.DataSegsIn, s.Backoff = k.Data_segs_out, k.Data_segs_in, k.Backoff
	s.RTTNs, s.RTONs = usToNs(k.Rtt), usToNs(k.Rto)
	if k.Min_rtt != math.MaxUint32 { // that is "none yet": tcp_min_rtt starts at ~0U
		s.MinRTTNs = usToNs(k.Min_rtt)
	}
	s.RwndLimitedNs = int64(k.Rwnd_limited) * 1000
	s.SentAgoNs, s.ReceivedAgoNs, s.AckedAgoNs = msToNs(k.Last_data_sent), msToNs(k.Last_data_recv),
		msToNs(k.Last_ack_recv)
}

func usToNs(us uint32) int64 { return int64(us) * 1000 }

func msToNs(ms uint32) int64 { return int64(ms) * 1_000_000 }
