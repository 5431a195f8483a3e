package host

import (
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Constants of include/uapi/linux/inet_diag.h.
const (
	// the request before SOCK_DIAG_BY_FAMILY: it dumps both families in one walk (inet_diag_rcv_msg_compat)
	tcpDiagGetSock      = 18
	inetDiagInfo        = 2 // attribute and bit number: struct tcp_info
	inetDiagReqBytecode = 1
	inetDiagBCSGE       = 2 // source port >= value of the next operation
	inetDiagBCSLE       = 3
	inetDiagBCDGE       = 4 // destination port
	inetDiagBCDLE       = 5
	allStates           = 0xffffffff
	noCookie            = 0xffffffff // INET_DIAG_NOCOOKIE
)

// inetDiagSockID is struct inet_diag_sockid. Ports and addresses are in network byte order; IPv4 has the first four
// bytes of an address.
type inetDiagSockID struct {
	sport, dport [2]byte
	src, dst     [16]byte
	_            uint32 // idiag_if
	cookie       [2]uint32
}

// inetDiagReq is struct inet_diag_req.
type inetDiagReq struct {
	family, _, _, ext uint8
	_                 inetDiagSockID
	states, _         uint32
}

// inetDiagReqV2 is struct inet_diag_req_v2.
type inetDiagReqV2 struct {
	family, protocol, ext, _ uint8
	states                   uint32
	id                       inetDiagSockID
}

// inetDiagMsg is struct inet_diag_msg.
type inetDiagMsg struct {
	family, state, timer, retrans uint8
	id                            inetDiagSockID
	_, rqueue, wqueue, _, inode   uint32
}

// appendStruct adds the bytes of a structure of the kernel.
func appendStruct[T unix.NlMsghdr | inetDiagReq | inetDiagReqV2 | unixDiagReq](b []byte, v *T) []byte {
	return append(b, unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))...)
}

// takeStruct copies a structure of the kernel from the beginning of b, false where b is too short.
func takeStruct[T inetDiagMsg | unixDiagMsg](b []byte, v *T) bool {
	return copy(unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)), b) == int(unsafe.Sizeof(*v))
}

// appendFind adds the request for one socket by its two ends.
func appendFind(b []byte, seq uint32, e Ends) []byte {
	const size = unix.NLMSG_HDRLEN + unsafe.Sizeof(inetDiagReqV2{})
	header := unix.NlMsghdr{Len: uint32(size), Type: unix.SOCK_DIAG_BY_FAMILY, Flags: unix.NLM_F_REQUEST, Seq: seq}
	query := inetDiagReqV2{
		family: unix.AF_INET, protocol: unix.IPPROTO_TCP, ext: 1 << (inetDiagInfo - 1), states: allStates,
		id: inetDiagSockID{sport: portBytes(e.Local), dport: portBytes(e.Remote), cookie: [2]uint32{
			noCookie,
			noCookie,
		}},
	}
	if !e.Local.Addr().Is4() {
		query.family = unix.AF_INET6
	}
	copy(query.id.src[:], e.Local.Addr().AsSlice())
	copy(query.id.dst[:], e.Remote.Addr().AsSlice())
	return appendStruct(appendStruct(b, &header), &query)
}

func portBytes(a netip.AddrPort) [2]byte { return [2]byte{byte(a.Port() >> 8), byte(a.Port())} }
