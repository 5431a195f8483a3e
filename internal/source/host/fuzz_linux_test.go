package host

import (
	"encoding/binary"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// FuzzDiag: whatever a message of sock_diag holds, its attributes end, and no duration is negative.
func FuzzDiag(f *testing.F) {
	message := make([]byte, unsafe.Sizeof(inetDiagMsg{}))
	message[0] = unix.AF_INET6
	f.Add(message)
	info := binary.NativeEndian.AppendUint16(nil, unix.SizeofNlAttr+unix.SizeofTCPInfo)
	info = binary.NativeEndian.AppendUint16(info, inetDiagInfo)
	f.Add(append(append(message, info...), make([]byte, unix.SizeofTCPInfo)...))
	f.Add(append(message, 4, 0, 0, 0, 5, 0, inetDiagInfo, 0, 1))
	f.Fuzz(func(t *testing.T, body []byte) {
		var s Socket
		if !parseDiag(body, &s) {
			return
		}
		if len(body) < int(unsafe.Sizeof(inetDiagMsg{})) {
			t.Errorf("a socket of %d bytes", len(body))
		}
		if s.RTTNs < 0 || s.MinRTTNs < 0 || s.RTONs < 0 || s.SentAgoNs < 0 || s.ReceivedAgoNs < 0 || s.AckedAgoNs < 0 {
			t.Errorf("%+v", s)
		}
	})
}

// FuzzUnixDiag: whatever a message of sock_diag holds, its attributes end, and a socket has a path.
func FuzzUnixDiag(f *testing.F) {
	message := make([]byte, unsafe.Sizeof(unixDiagMsg{}))
	message[1] = unix.SOCK_STREAM
	named := append(message, 8, 0, unixDiagName, 0, '/', 's', 0, 0, 8, 0, unixDiagPeer, 0, 7, 0, 0, 0)
	if s, ok := parseUnixDiag(named); !ok || s.Path != "/s" || s.Peer != 7 {
		f.Errorf("%+v, %v", s, ok)
	}
	f.Add(named)
	f.Add(append(message, 8, 0, unixDiagName, 0, 0, 's', 0, 0))
	f.Fuzz(func(t *testing.T, body []byte) {
		if s, ok := parseUnixDiag(body); ok && s.Path == "" {
			t.Errorf("%+v", s)
		}
	})
}

// FuzzNetworkChanges: whatever a datagram of netlink holds, reading it ends.
func FuzzNetworkChanges(f *testing.F) {
	route := binary.NativeEndian.AppendUint32(nil, unix.SizeofNlMsghdr)
	route = append(binary.NativeEndian.AppendUint16(route, unix.RTM_NEWROUTE), make([]byte, 10)...)
	f.Add(route)
	body := append(make([]byte, sizeOfNFGen), 8, 0, generationPID, 0, 0, 0, 3, 44)
	body = append(body, 8, 0, generationName, 0, 'n', 'f', 't', 0)
	generation := binary.NativeEndian.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body)))
	generation = append(binary.NativeEndian.AppendUint16(generation, newGeneration), make([]byte, 10)...)
	if d := networkChanges(append(generation, body...)); len(d) != 1 || d[0].By != "nft[812]" {
		f.Errorf("%+v", d)
	}
	f.Add(append(generation, body...))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, d := range networkChanges(b) {
			if d.What == "" || d.How == "" {
				t.Errorf("%+v", d)
			}
		}
	})
}
