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
