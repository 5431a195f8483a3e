//go:build linux

package tap

import (
	"net/netip"
	"slices"
	"testing"
	"unsafe"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/source/host"
)

// reportOf is the bytes of a report of the programs, with its kind.
func reportOf[T any](kind kernelEventType, e T) []byte {
	b := slices.Clone(unsafe.Slice((*byte)(unsafe.Pointer(&e)), unsafe.Sizeof(e)))
	b[0] = byte(kind)
	return b
}

// FuzzReports: reports of the kernel programs, whose addresses, names, times and sizes come from processes and peers.
// What is kept of
// them is bounded.
func FuzzReports(f *testing.F) {
	server := netip.MustParseAddrPort("127.0.0.1:6379")
	address := kernelAddr{Role: roleServer, Lport: server.Port(), Rport: 4000}
	for _, a := range []*[16]uint8{&address.Laddr, &address.Raddr} {
		*a = netip.MustParseAddr("::ffff:127.0.0.1").As16()
	}
	seeds := [][]byte{
		reportOf(evCall, kernelCallEvent{
			Role: roleServer, Tid: 50, Tgid: 50, At: [4]uint64{1e9, 1.02e9, 1.021e9, 1.03e9}, Complete: 1.001e9,
			Addr: address,
		}),
		reportOf(evOpen, kernelConnEvent{Addr: address}),
		reportOf(evClose, kernelConnEvent{Addr: address}),
		reportOf(evStatus, kernelConnEvent{Addr: address}),
		reportOf(evActivity, kernelActivityEvent{}),
		reportOf(evOffCPU, kernelOffcpuEvent{}),
		reportOf(evRetrans, kernelRetransEvent{}),
		reportOf(evAcked, kernelAckedEvent{}),
		reportOf(evDNS, kernelDnsEvent{}),
		reportOf(evFunction, kernelFunctionEvent{}),
	}
	for _, s := range seeds {
		f.Add(s, []byte{})
		f.Add(seeds[0], s)
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		rec := recording.New()
		o := Options{Clock: clock.New(), Files: host.Root{}, Sink: rec, Slow: DefaultSlow, Nodes: []Node{{
			Address: server.String(), Remote: server, PID: 50,
		}}}
		tap := &Tap{Options: o, recorder: newRecorder(o, func(ns uint64) int64 { return int64(ns) },
			func(uint16) nodeOp { return nodeOp{name: "GET"} })}
		for _, report := range [][]byte{first, second, first} {
			if len(report) > 0 && kernelEventType(report[0]) != evCollection { // needs the kernel: FuzzEachProbe
				tap.take(report)
			}
		}
		tap.recorder.settle(endOfWatch)
		if len(rec.Calls) > 3 {
			t.Errorf("%d calls of 3 reports", len(rec.Calls))
		}
		for _, c := range rec.Calls {
			if len(c.Op) > 80 || len(c.Client) > 80 {
				t.Errorf("%+v", c)
			}
		}
	})
}
