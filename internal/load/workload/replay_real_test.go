package workload

import (
	"bytes"
	"net"
	"testing"
	"time"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
)

// What MONITOR of a real server prints of a session, replayed, leaves the same data under the prefix.
func TestReplayOfRealMonitor(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	for _, name := range fleettest.Among(servers.Redis506, servers.Redis7015, servers.Valkey811) {
		t.Run(string(name), func(t *testing.T) {
			i := start(t, name)
			c := dial(t, i)
			watch, err := net.Dial("tcp", i.Addr)
			if err != nil {
				t.Fatal(err)
			}
			defer watch.Close()
			monitor(t, watch)
			binary := "a\x00\xff\"\\\r\n\a\b\t'é"
			if name == servers.Valkey811 {
				binary = "a\x00\xff\r\n\a\b\t'é" // its MONITOR escapes neither quotes nor backslashes: see unreadable
			}
			c.do("SET", "k "+binary, binary)
			c.do("HSET", "h", "f", binary)
			c.do("MULTI")
			c.do("INCR", "n")
			c.do("RPUSH", "l", "1", "2", "")
			c.do("EXEC")
			c.do("EVAL", "return redis.call('SET', KEYS[1], ARGV[1])", "1", "by-script", "v")
			c.do("ECHO", "the end")
			log := readUntil(t, watch, "the end")
			r, err := ReadMonitor(bytes.NewReader(log), ReplayOptions{})
			if err != nil {
				t.Fatalf("%v of %s", err, log)
			}
			for s := r.Streams(1, 0, 0)[0]; s.Remaining() > 0; {
				b, q := s.Next(nil)
				for _, v := range c.send(b, int(q.Replies)) {
					if err := v.Err(); err != nil {
						t.Errorf("%v of %q", err, b)
					}
				}
			}
			for _, ask := range [][]string{
				{"GET", "k " + binary},
				{"HGET", "h", "f"},
				{"GET", "n"},
				{"LINDEX", "l", "2"},
				{"LLEN", "l"},
				{"GET", "by-script"},
			} {
				want := c.do(ask...)
				ask[1] = Prefix + ask[1]
				if got := c.do(ask...); got.Kind != want.Kind || got.Text() != want.Text() || got.IsNull() {
					t.Errorf("%q: %q, want %q", ask, got.Text(), want.Text())
				}
			}
		})
	}
}

// monitor puts a connection into MONITOR, and waits for the server's OK.
func monitor(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil {
		t.Fatal(err)
	}
	readUntil(t, conn, "OK\r\n")
}

// readUntil reads what MONITOR sends, until a text has come; as lines, without the + of the protocol.
func readUntil(t *testing.T, conn net.Conn, text string) []byte {
	t.Helper()
	var all []byte
	for buf := make([]byte, 4096); !bytes.Contains(all, []byte(text)); {
		n, err := conn.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, buf[:n]...)
	}
	var lines []byte
	for line := range bytes.Lines(all) {
		lines = append(lines, bytes.TrimPrefix(line, []byte("+"))...)
	}
	return lines
}
