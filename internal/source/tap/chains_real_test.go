//go:build linux

package tap

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
)

// TestChains: calls of one command one after the other are a chain, up to a pause or the end of the connection. Other
// ways to make as many calls are none.
func TestChains(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	var longest time.Duration // from one reply of a page to the next
	get := func(k *talk, calls int) {
		last := time.Now()
		for range calls {
			k.ask("$-1\r\n", "GET", "absent")
			now := time.Now()
			longest, last = max(longest, now.Sub(last)), now
		}
	}
	const pause = 200 * time.Millisecond
	for _, c := range []struct {
		name          string
		use           func(k *talk)
		chains, calls uint64
	}{
		{"three pages", func(k *talk) {
			for range 3 {
				get(k, 200)
				await.Pass(2 * pause)
			}
		}, 3, 600},
		{"a page on a connection of its own", func(k *talk) { get(k, 200) }, 1, 200},
		{"few calls", func(k *talk) { get(k, 9) }, 0, 0},
		{"two commands in turns", func(k *talk) {
			for range 100 {
				get(k, 1)
				k.ask(":0\r\n", "EXISTS", "absent")
			}
		}, 0, 0},
		{"pipelines", func(k *talk) {
			for range 20 {
				if _, err := k.conn.Write([]byte(strings.Repeat(command("GET", "absent"), 20))); err != nil {
					k.t.Fatal(err)
				}
				k.expect(strings.Repeat("$-1\r\n", 20))
			}
		}, 0, 0},
	} {
		for _, strict := range []uint32{0, 1} {
			t.Run(fmt.Sprintf("%s, strict=%d", c.name, strict), func(t *testing.T) {
				var chains, calls, ns, inFlight uint64
				// A busy machine makes pauses that nobody asked for, and a send that ends after its reply was read is
				// not seen in order.
				for range 20 {
					longest = 0
					chains, calls, ns, inFlight = 0, 0, 0, 0
					port := startServer(t)
					r := openRaw(t, port, constants{
						"slow_ns": uint64(100_000), "chain_pause_ns": uint64(pause), "strict_all": strict,
					})
					k := newTalk(t, port)
					c.use(k)
					k.conn.Close()
					r.finish(t)
					for _, e := range r.closes {
						if e.Role == roleClient {
							chains, calls = chains+e.Chains.Count, calls+e.Chains.Calls
							ns, inFlight = ns+e.Chains.Ns, inFlight+e.Chains.InFlightNs
						}
					}
					if longest < pause/2 && chains == c.chains && calls == c.calls {
						break
					}
				}
				if chains != c.chains || calls != c.calls {
					t.Errorf("%d chains of %d calls, there were %d of %d", chains, calls, c.chains, c.calls)
				}
				if inFlight > ns || (inFlight == 0) != (chains == 0) {
					t.Errorf("%d ns, of these %d with a call in flight", ns, inFlight)
				}
			})
		}
	}
}
