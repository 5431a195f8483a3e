//go:build linux

package tap

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
)

// talk is a connection whose replies are known beforehand.
type talk struct {
	t    *testing.T
	conn net.Conn
	want []stamped
	took time.Duration // of all that was asked
}

func newTalk(t *testing.T, port int) *talk { return dialTalk(t, "127.0.0.1", port, nil) }

// dialTalk calls a function with the cookie of the socket before it connects, if there is one.
func dialTalk(t *testing.T, address string, port int, made func(cookie uint64)) *talk {
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		if made == nil {
			return nil
		}
		return raw.Control(func(fd uintptr) {
			cookie, err := unix.GetsockoptUint64(int(fd), unix.SOL_SOCKET, unix.SO_COOKIE)
			attached(t, err)
			made(cookie)
		})
	}}
	c, err := d.Dial("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(60 * time.Second))
	return &talk{t: t, conn: c}
}

// send asks without waiting.
func (k *talk) send(args ...string) int {
	text := command(args...)
	if _, err := k.conn.Write([]byte(text)); err != nil {
		k.t.Fatal(err)
	}
	return len(text)
}

// expect reads exactly these bytes.
func (k *talk) expect(reply string) {
	k.t.Helper()
	got := make([]byte, len(reply))
	if _, err := io.ReadFull(k.conn, got); err != nil || string(got) != reply {
		k.t.Fatalf("got %q, want %q (%v)", got, reply, err)
	}
}

// taken waits until the server has read all that was sent, and sleeps.
func (k *talk) taken(port int) {
	k.t.Helper()
	await.Until(k.t, "the server has read all", func() bool { return unread(k.t, port, k.conn) == 0 })
	atRest(k.t, port)
}

// unread is how many bytes wait at the server's end of a connection.
func unread(t *testing.T, port int, c net.Conn) (n int) {
	t.Helper()
	b, err := os.ReadFile("/proc/thread-self/net/tcp") // the first thread may be in another namespace, see dial
	if err != nil {
		t.Fatal(err)
	}
	// columns: sl local rem st tx:rx …
	local, rem := fmt.Sprintf(":%04X", port), fmt.Sprintf(":%04X", c.LocalAddr().(*net.TCPAddr).Port)
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasSuffix(f[1], local) && strings.HasSuffix(f[2], rem) {
			if _, err := fmt.Sscanf(f[4][len(f[4])-8:], "%X", &n); err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("the server has no such connection")
	return 0
}

// alone waits until the server has closed all other connections.
func (k *talk) alone() {
	k.t.Helper()
	got := make([]byte, 0, 4096)
	await.Until(k.t, "it is the only connection", func() bool {
		k.send("INFO", "clients")
		for got = got[:0]; !isWholeInfo(got); { // behind replies that nobody has read so far
			n, err := k.conn.Read(got[len(got):cap(got)])
			if err != nil {
				k.t.Fatal(err)
			}
			got = slices.Grow(got[:len(got)+n], 4096)
		}
		return strings.Contains(string(got), "connected_clients:1\r\n")
	})
}

// isWholeInfo tells whether replies end with a whole one of INFO.
func isWholeInfo(replies []byte) bool {
	const begin = "\r\n# Clients\r\n"
	at := bytes.LastIndex(replies, []byte(begin))
	if at < 0 {
		return false
	}
	size, err := strconv.Atoi(string(replies[bytes.LastIndexByte(replies[:at], '$')+1 : at]))
	return err == nil && len(replies) == at+len("\r\n")+size+len("\r\n")
}

// ask makes a call that must be seen with these sizes.
func (k *talk) ask(reply string, args ...string) {
	k.t.Helper()
	begin := time.Now()
	n := k.send(args...)
	k.expect(reply)
	k.took += time.Since(begin)
	k.want = append(k.want, stamped{op: args[0], request: n, reply: len(reply)})
}

// TestSpecialCommands: commands without a reply of their own, with a late one, and messages that nobody asked for shift
// no pair.
func TestSpecialCommands(t *testing.T) {
	needs.Real(t, needs.BPF, needs.RedisServer)
	for _, strict := range []uint32{1, 0} {
		t.Run(fmt.Sprintf("strict=%d", strict), func(t *testing.T) {
			port := startServer(t)
			r := openRaw(t, port, constants{
				"strict_all": strict, "sample_per_tick": uint32(1 << 30),
				"slow_ns": uint64(1) << 60,
			})
			other := newTalk(t, port)
			var talks []*talk
			begin := func() *talk {
				k := newTalk(t, port)
				talks = append(talks, k)
				k.ask("+PONG\r\n", "PING")
				return k
			}

			k := begin() // CLIENT REPLY
			k.send("CLIENT", "REPLY", "SKIP")
			k.send("ECHO", "skipped")
			k.ask("$3\r\none\r\n", "ECHO", "one")
			k.send("CLIENT", "REPLY", "OFF")
			k.send("ECHO", "off")
			k.send("SET", "x", "y")
			k.ask("+OK\r\n", "CLIENT", "REPLY", "ON")
			k.ask("$5\r\nthree\r\n", "ECHO", "three")

			k = begin() // MULTI
			k.ask("+OK\r\n", "MULTI")
			k.ask("+QUEUED\r\n", "ECHO", "a")
			k.ask("+QUEUED\r\n", "ECHO", "bb")
			k.ask("*2\r\n$1\r\na\r\n$2\r\nbb\r\n", "EXEC")
			k.ask("-ERR EXEC without MULTI\r\n", "EXEC")
			k.ask("$4\r\nfour\r\n", "ECHO", "four")

			k = begin() // a blocking command with a call behind it
			blocked := k.send("BLPOP", "list", "0")
			behind := k.send("ECHO", "behind")
			k.taken(port) // the server is to read both before the other connection's push
			other.ask(":1\r\n", "LPUSH", "list", "v")
			k.expect("*2\r\n$4\r\nlist\r\n$1\r\nv\r\n$6\r\nbehind\r\n")
			k.want = append(k.want, stamped{"BLPOP", blocked, 21, 0, 0}, stamped{"ECHO", behind, 12, 0, 0})
			k.ask("$5\r\nafter\r\n", "ECHO", "after")

			k = begin() // RESP3 pushes
			k.send("HELLO", "3")
			got := make([]byte, 4096)
			n, err := k.conn.Read(got)
			if err != nil {
				t.Fatal(err)
			}
			k.want = append(k.want, stamped{"HELLO", len(command("HELLO", "3")), n, 0, 0})
			k.ask("+OK\r\n", "CLIENT", "TRACKING", "ON")
			k.ask("_\r\n", "GET", "tracked")
			other.ask("+OK\r\n", "SET", "tracked", "1")
			k.expect(">2\r\n$10\r\ninvalidate\r\n*1\r\n$7\r\ntracked\r\n")
			k.ask("$1\r\n1\r\n", "GET", "tracked")
			k.ask("$3\r\nend\r\n", "ECHO", "end")

			sub := newTalk(t, port) // a subscriber is left out after it has subscribed
			sub.send("SUBSCRIBE", "channel")
			sub.expect("*3\r\n$9\r\nsubscribe\r\n$7\r\nchannel\r\n:1\r\n")
			other.ask(":1\r\n", "PUBLISH", "channel", "hello")
			sub.expect("*3\r\n$7\r\nmessage\r\n$7\r\nchannel\r\n$5\r\nhello\r\n")
			talks = append(talks, other, sub)

			calls, counts := r.finish(t)
			for i, k := range talks {
				for _, role := range []kernelRole{roleServer, roleClient} {
					var got []stamped
					for _, e := range calls {
						client, _ := endsOf(&e.Addr)
						if client.AddrPort == k.conn.LocalAddr().(*net.TCPAddr).AddrPort() && e.Role == role {
							got = append(got, stamped{request: int(e.ReqBytes), reply: int(e.RepBytes)})
						}
					}
					if strict == 0 && role == roleClient {
						continue // only the last call of a turn
					}
					same := func(a, b stamped) bool { return a.request == b.request && a.reply == b.reply }
					if !slices.EqualFunc(got, k.want, same) {
						t.Errorf("connection %d at end %d: got %v, want %v; %v", i, role, got, k.want, counts)
					}
				}
			}
		})
	}
}
