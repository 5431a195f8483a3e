//go:build linux

package tap

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"

	"slowpath/internal/house/needs"
)

// TestGarbage: what is not RESP is left out and counted, and harms nobody's calls.
func TestGarbage(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	port := startServer(t)
	r := openRaw(t, port, constants{
		"strict_all": uint32(1), "sample_per_tick": uint32(1 << 30),
		"slow_ns": uint64(1) << 60,
	})
	all := stampers(t, port, 3, 4)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 40 {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatal(err)
		}
		junk := make([]byte, 1+random.IntN(6000))
		for j := range junk {
			junk[j] = byte(random.Uint32())
		}
		switch i % 4 {
		case 1:
			junk = []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		case 2:
			junk = []byte("*3\r\n$3\r\nSET\r\n$999999999999999\r\nx")
		case 3:
			junk = append([]byte("*-5\r\n*99999999\r\n$-7\r\n"), junk...)
		}
		_, _ = c.Write(junk)               // the server may have closed it already
		_ = c.(*net.TCPConn).CloseWrite()  // or waits for the rest
		_, _ = c.Read(make([]byte, 1<<16)) // an error, or nothing
		c.Close()
		run(t, all, 2)
	}
	calls, counts := r.finish(t)
	if counts["garbage"] == 0 {
		t.Error("no garbage was counted")
	}
	checkPairs(t, all, calls, counts, false)
}

// TestTooManyConnections: what finds no room is counted, and the others are seen as ever.
func TestTooManyConnections(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	port := startServer(t)
	r := openRaw(t, port, constants{"max_conns": uint32(100)})
	all := stampers(t, port, 300, 1)
	run(t, all, 3)
	_, counts := r.finish(t)
	if counts["conns_full"] == 0 || counts["unfollowed"] == 0 {
		t.Errorf("300 connections found room for 100: %v", counts)
	}
	if n := counts["calls.server"]; n == 0 || n >= 900 {
		t.Errorf("%d of 900 calls were seen", n)
	}
}
