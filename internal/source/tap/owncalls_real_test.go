//go:build linux

package tap

import (
	"net"
	"testing"

	"slowpath/internal/house/needs"
)

// TestOwnCallsAreReported: slowpath's own slow calls are reported from the server's end however many others are.
func TestOwnCallsAreReported(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	port := startServer(t)
	for name, want := range map[string]bool{"own": true, "another's": false} {
		t.Run(name, func(t *testing.T) {
			r := openRaw(t, port, constants{
				"slow_ns": uint64(15e6), "slow_burst": uint32(0), "slow_per_tick": uint32(0),
			})
			k := dialTalk(t, "127.0.0.1", port, func(cookie uint64) {
				if want {
					attached(t, r.coll.Maps[kernelMapOwnSockets].Put(cookie, uint8(1)))
				}
			})
			for range 10 { // the first ones of a connection are reported in any case
				k.ask("+PONG\r\n", "PING")
			}
			k.ask("+OK\r\n", "DEBUG", "SLEEP", "0.03")
			calls, counts := r.finish(t)
			got := false
			for _, e := range calls {
				client, _ := endsOf(&e.Addr)
				got = got || e.Role == roleServer && e.Flags&flagFresh == 0 &&
					client.AddrPort == k.conn.LocalAddr().(*net.TCPAddr).AddrPort()
			}
			if got != want || (counts["calls.own"] == 11) != want || (counts["calls.server"] == 0) != want {
				t.Errorf("reported: %v, want %v; %v", got, want, counts)
			}
		})
	}
}
