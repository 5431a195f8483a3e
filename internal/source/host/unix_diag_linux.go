package host

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Constants of include/uapi/linux/unix_diag.h.
const (
	unixDiagShowName = 1
	unixDiagShowPeer = 4
	unixDiagName     = 0 // attributes: the path, or a zero byte and an abstract name
	unixDiagPeer     = 2 // the inode of the other end
)

// unixDiagReq is struct unix_diag_req.
type unixDiagReq struct {
	family, _ uint8
	_         uint16
	states    uint32
	_, show   uint32
	_         [2]uint32 // cookie
}

// unixDiagMsg is struct unix_diag_msg.
type unixDiagMsg struct {
	_, kind, state, _ uint8
	inode             uint32
	_                 [2]uint32 // cookie
}

// VisitUnix dumps those that listen or are connected.
func (d *diag) VisitUnix(visit func(UnixSocket) bool) error {
	d.seq++
	header := unix.NlMsghdr{
		Type: unix.SOCK_DIAG_BY_FAMILY, Flags: unix.NLM_F_REQUEST | unix.NLM_F_DUMP, Seq: d.seq,
	}
	query := unixDiagReq{
		family: unix.AF_UNIX, states: 1<<tcpListen | 1<<tcpEstablished, show: unixDiagShowName | unixDiagShowPeer,
	}
	d.req = appendStruct(appendStruct(d.req[:0], &header), &query)
	binary.NativeEndian.PutUint32(d.req, uint32(len(d.req))) // nlmsg_len comes first
	return d.dump(func(body []byte) bool {
		s, ok := parseUnixDiag(body)
		return !ok || visit(s)
	})
}

// parseUnixDiag decodes struct unix_diag_msg and its attributes; ok is false where it is no stream socket with a path.
func parseUnixDiag(b []byte) (s UnixSocket, ok bool) {
	var m unixDiagMsg
	if !takeStruct(b, &m) || m.kind != unix.SOCK_STREAM {
		return s, false
	}
	s = UnixSocket{Inode: uint64(m.inode), Listening: m.state == tcpListen}
	attributes(b[unsafe.Sizeof(m):], func(kind uint16, value []byte) {
		switch {
		case kind == unixDiagName && len(value) > 0 && value[0] != 0:
			s.Path = unix.ByteSliceToString(value)
		case kind == unixDiagPeer && len(value) >= 4:
			s.Peer = uint64(binary.NativeEndian.Uint32(value))
		}
	})
	return s, s.Path != ""
}
