//go:build linux

package tap

import (
	"testing"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/source/host"
)

// TestSleepingServer: that a server slept before it replied has three reasons, which the kernel can tell apart.
func TestSleepingServer(t *testing.T) {
	b := newRecorder(Options{Clock: clock.New(), Files: host.Root{}, Nodes: []Node{{PID: 50}, {Proxy: 60}}},
		func(ns uint64) int64 { return int64(ns) }, func(uint16) nodeOp { return nodeOp{name: "GET"} })
	for _, tt := range []struct {
		name      string
		tid, tgid uint32
		flags     kernelCallFlag
		actor     string
		state     string
	}{
		{"it sent nothing", 50, 50, flagQuiet, recording.Server, recording.Withheld},
		{"replies went out piece by piece", 50, 50, flagPieces, recording.Server, recording.Send},
		{"a proxy waits for its server", 61, 60, flagQuiet, recording.Proxy, recording.Forward},
		{"the thread only reads for others", 51, 50, flagQuiet, recording.Nobody, recording.Unexplained},
		{"not known", 50, 50, 0, recording.Nobody, recording.Unexplained},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := &kernelCallEvent{Role: roleServer, Tid: tt.tid, Tgid: tt.tgid, Flags: tt.flags, At: [4]uint64{
				1e9,
				1.001e9, 1.002e9, 1.102e9,
			}, Complete: 1e9}
			e.Clk[3].Ns[asleep] = 90e6
			var ns int64
			for _, s := range b.serverSegments(e) {
				if s.Actor == tt.actor && s.State == tt.state {
					ns += s.ToNs - s.FromNs
				}
			}
			if ns != 90e6 {
				t.Errorf("%d ns in %s %s, want 90 ms: %+v", ns, tt.actor, tt.state, b.serverSegments(e))
			}
		})
	}
}

// TestAckWait: while WAIT waits for replicas, the event loop serves others. Where it cannot run, that is the reason.
func TestAckWait(t *testing.T) {
	b := newRecorder(Options{Clock: clock.New(), Files: host.Root{}, Nodes: []Node{{PID: 50}}},
		func(ns uint64) int64 { return int64(ns) }, func(uint16) nodeOp { return nodeOp{name: "WAIT"} })
	e := &kernelCallEvent{
		Role: roleServer, Tid: 50, Tgid: 50, Flags: flagBlocking | flagQuiet, Complete: 1e9,
		At: [4]uint64{1e9, 1e9, 1.001e9, 1.101e9},
	}
	e.Clk[3].Ns[asleep], e.Clk[3].Ns[throttled] = 50e6, 20e6
	got := map[string]int64{}
	for _, s := range b.serverSegments(e) {
		got[s.State] += s.ToNs - s.FromNs
	}
	if got[recording.AckWait] != 80e6 || got[recording.Throttled] != 20e6 || got[recording.Busy] != 0 {
		t.Errorf("got %v, want 80 ms in ack-wait and 20 ms throttled", got)
	}
}
