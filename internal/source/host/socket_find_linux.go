package host

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// findAtOnce is how many sockets are asked for in one message: their replies fit in the socket's buffer.
const findAtOnce = 32

// Find asks for each socket by its ends: some µs each, however many the host has.
func (d *diag) Find(sockets []Ends, found func(*Socket)) error {
	for len(sockets) > 0 {
		n := min(len(sockets), findAtOnce)
		if err := d.find(sockets[:n], found); err != nil {
			return fmt.Errorf("sock_diag: %w", err)
		}
		sockets = sockets[n:]
	}
	return nil
}

func (d *diag) find(sockets []Ends, found func(*Socket)) error {
	d.req = d.req[:0]
	first := d.seq + 1
	for _, e := range sockets {
		d.seq++
		d.req = appendFind(d.req, d.seq, e)
	}
	if err := d.send(); err != nil {
		return err
	}
	for left := len(sockets); left > 0; {
		err := d.replies(func(kind uint16, seq uint32, body []byte) error {
			if seq < first || seq > d.seq {
				return nil
			}
			left--
			if kind == unix.NLMSG_ERROR {
				if err := netlinkError(body); err != unix.ENOENT { // else it is gone
					return err
				}
			} else if parseDiag(body, &d.s) && d.s.State == tcpEstablished { // for a socket that is gone it gives the listener
				found(&d.s)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// appendFind adds nlmsghdr and inet_diag_req_v2 for one socket.
func appendFind(b []byte, seq uint32, e Ends) []byte {
	const size = unix.NLMSG_HDRLEN + inetDiagReqV2Bytes
	at := len(b)
	b = append(b, make([]byte, size)...)
	m := b[at:]
	binary.NativeEndian.PutUint32(m, size)
	binary.NativeEndian.PutUint16(m[4:], sockDiagByFamily)
	binary.NativeEndian.PutUint16(m[6:], unix.NLM_F_REQUEST)
	binary.NativeEndian.PutUint32(m[8:], seq)
	m[16], m[17], m[18] = unix.AF_INET, unix.IPPROTO_TCP, 1<<(inetDiagInfo-1)
	binary.NativeEndian.PutUint32(m[20:], 0xffffffff) // states
	binary.BigEndian.PutUint16(m[24:], e.Local.Port())
	binary.BigEndian.PutUint16(m[26:], e.Remote.Port())
	if e.Local.Addr().Is4() {
		copy(m[28:], e.Local.Addr().AsSlice())
		copy(m[44:], e.Remote.Addr().AsSlice())
	} else {
		m[16] = unix.AF_INET6
		copy(m[28:44], e.Local.Addr().AsSlice())
		copy(m[44:60], e.Remote.Addr().AsSlice())
	}
	for i := range 8 { // INET_DIAG_NOCOOKIE, twice
		m[64+i] = 0xff
	}
	return b
}
