package target

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestStampOf(t *testing.T) {
	message := func(kind int32, data []byte) []byte {
		b := make([]byte, unix.CmsgSpace(len(data)))
		header := make([]byte, 0, unix.CmsgLen(0))
		if unix.CmsgLen(0) == 16 {
			header = binary.NativeEndian.AppendUint64(header, uint64(unix.CmsgLen(len(data))))
		} else {
			header = binary.NativeEndian.AppendUint32(header, uint32(unix.CmsgLen(len(data))))
		}
		header = binary.NativeEndian.AppendUint32(header, unix.SOL_SOCKET)
		header = binary.NativeEndian.AppendUint32(header, uint32(kind))
		copy(b, header)
		copy(b[unix.CmsgLen(0):], data)
		return b
	}
	wide := binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(nil, 1_700_000_000), 5)
	narrow := binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint32(nil, 1_700_000_000), 5)
	other := message(unix.SCM_RIGHTS, make([]byte, 4))
	for name, test := range map[string]struct {
		control []byte
		want    int64
	}{
		"64 bit":          {message(unix.SCM_TIMESTAMPNS, wide), 1_700_000_000_000_000_005},
		"32 bit":          {message(unix.SCM_TIMESTAMPNS, narrow), 1_700_000_000_000_000_005},
		"after another":   {append(other, message(unix.SCM_TIMESTAMPNS, wide)...), 1_700_000_000_000_000_005},
		"too short":       {message(unix.SCM_TIMESTAMPNS, wide[:4]), 0},
		"another":         {message(unix.SCM_RIGHTS, wide), 0},
		"cut off":         {message(unix.SCM_TIMESTAMPNS, wide)[:unix.CmsgLen(0)], 0},
		"nothing":         {nil, 0},
		"length too long": {append(binary.NativeEndian.AppendUint64(nil, 1<<20), make([]byte, 24)...), 0},
	} {
		if got := stampOf(test.control); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

func TestTCPInfoUnits(t *testing.T) {
	got := fromKernel(&unix.TCPInfo{
		State: 8, Ca_state: 99, Rtt: 1500, Min_rtt: math.MaxUint32, Last_data_recv: 7,
		Rwnd_limited: 2_000_000,
	})
	want := TCPInfo{State: "CLOSE_WAIT", CAState: "unknown(99)", RTT: 1500 * time.Microsecond, LastDataRecv: 7 *
		time.Millisecond, RwndLimited: 2 * time.Second}
	if got != want {
		t.Errorf("%+v", got)
	}
	if got := fromKernel(&unix.TCPInfo{Min_rtt: 12}).MinRTT; got != 12*time.Microsecond {
		t.Error(got)
	}
}
