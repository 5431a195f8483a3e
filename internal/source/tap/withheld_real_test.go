//go:build linux

package tap

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
)

// TestSilentServer: calls of a client that is paused, a call behind one that blocks, and a reply that its reader takes
// slowly.
func TestSilentServer(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
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
	await.Pass(late)
	other.ask("+OK\r\n", "CLIENT", "UNPAUSE")
	paused.expect(":0\r\n")

	blocked.send("BLPOP", "list", "0")
	blocked.send("ECHO", "behind")
	blocked.taken(port)
	await.Pass(late)
	other.ask(":1\r\n", "LPUSH", "list", "v")
	blocked.expect("*2\r\n$4\r\nlist\r\n$1\r\nv\r\n$6\r\nbehind\r\n")

	value := strings.Repeat("x", 16<<20) // more than the buffers of both sockets hold
	other.send("SET", "big", value)
	other.expect("+OK\r\n")
	reader.send("GET", "big")
	whenFull(t, reader.conn.(*net.TCPConn))
	await.Pass(late)
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
