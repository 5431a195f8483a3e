//go:build linux

package tap

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

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

// TestSilentServer: calls of a client that is paused, a call behind one that blocks, and a reply that its reader takes
// slowly.
func TestSilentServer(t *testing.T) {
	port := startServer(t)
	r := openRaw(t, port, constants{"slow_ns": uint64(10e6), "strict_all": uint32(1)})
	other, paused, blocked, reader := newTalk(t, port), newTalk(t, port), newTalk(t, port), newTalk(t, port)
	const first = 10
	for _, k := range []*talk{other, paused, blocked, reader} {
		for range first { // the first ones of a connection are reported in any case
			k.ask("+PONG\r\n", "PING")
		}
	}
	const late = 60 * time.Millisecond // a call is slow from 10 ms on
	other.ask("+OK\r\n", "CLIENT", "PAUSE", "60000", "WRITE")
	paused.send("DEL", "nothing")
	paused.taken(port)
	time.Sleep(late)
	other.ask("+OK\r\n", "CLIENT", "UNPAUSE")
	paused.expect(":0\r\n")

	blocked.send("BLPOP", "list", "0")
	blocked.send("ECHO", "behind")
	blocked.taken(port)
	time.Sleep(late)
	other.ask(":1\r\n", "LPUSH", "list", "v")
	blocked.expect("*2\r\n$4\r\nlist\r\n$1\r\nv\r\n$6\r\nbehind\r\n")

	value := strings.Repeat("x", 16<<20) // more than the buffers of both sockets hold
	other.send("SET", "big", value)
	other.expect("+OK\r\n")
	reader.send("GET", "big")
	whenFull(t, reader.conn.(*net.TCPConn))
	time.Sleep(late)
	reader.expect(fmt.Sprintf("$%d\r\n%s\r\n", len(value), value))

	calls, counts := r.finish(t)
	for _, want := range []struct {
		k    *talk
		flag kernelCallFlag
	}{{paused, flagQuiet}, {blocked, flagQuiet}, {reader, flagPieces}} {
		n := 0
		for _, e := range calls {
			client, _ := endsOf(&e.Addr)
			if e.Role != roleServer || e.Number <= first ||
				client.AddrPort != want.k.conn.LocalAddr().(*net.TCPAddr).AddrPort() {
				continue
			}
			n++
			if e.Flags&(flagQuiet|flagPieces) != want.flag {
				t.Errorf("flags %d, want %d: %+v", e.Flags, want.flag, e)
			}
		}
		if n == 0 {
			t.Errorf("no slow call of the connection with flag %d was reported; %v", want.flag, counts)
		}
	}
}
