package fault

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// through is a client of a proxy before a server that treats its connection by serve. All are in the test's bubble.
func through(t *testing.T, p *Proxy, serve func(net.Conn)) net.Conn {
	t.Helper()
	client, front := net.Pipe()
	back, server := net.Pipe()
	t.Cleanup(func() { client.Close() })
	go p.between(t.Context(), front, back)
	go func() {
		defer server.Close()
		serve(server)
	}()
	return client
}

// TestProxyDelaysEachDirection: data comes the delay of its own direction later, and the other direction has none.
func TestProxyDelaysEachDirection(t *testing.T) {
	const delay = 2 * time.Second
	for name, p := range map[string]*Proxy{
		"neither":  {},
		"requests": {RequestDelay: delay},
		"replies":  {ReplyDelay: delay},
		"both":     {RequestDelay: delay, ReplyDelay: delay / 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				came := make(chan time.Time, 1)
				client := through(t, p, func(c net.Conn) {
					request := make([]byte, 1)
					if _, err := io.ReadFull(c, request); err == nil {
						came <- time.Now()
						_, _ = c.Write(request)
					}
				})
				sent := time.Now()
				if _, err := client.Write([]byte{7}); err != nil {
					t.Fatal(err)
				}
				reply := make([]byte, 1)
				if _, err := io.ReadFull(client, reply); err != nil || reply[0] != 7 {
					t.Fatalf("reply %v, %v", reply, err)
				}
				there := <-came
				if request, back := there.Sub(sent), time.Since(there); request != p.RequestDelay ||
					back != p.ReplyDelay {
					t.Errorf("the request took %v, the reply %v", request, back)
				}
			})
		})
	}
}

// TestProxyDelayKeepsOrderAndThroughput sends 1 000 messages in one direction at once. They come in their order, after
// the delay of one of them.
func TestProxyDelayKeepsOrderAndThroughput(t *testing.T) {
	const delay = 100 * time.Millisecond
	for name, p := range map[string]*Proxy{"requests": {RequestDelay: delay}, "replies": {ReplyDelay: delay}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				atServer, atClient := receive, send
				if p.ReplyDelay > 0 {
					atServer, atClient = send, receive
				}
				served := make(chan error, 1)
				start := time.Now()
				client := through(t, p, func(c net.Conn) { served <- atServer(c) })
				if err := errors.Join(atClient(client), <-served); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took != delay {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

const (
	messages = 1000
	size     = 1 << 10
)

func send(c net.Conn) error {
	message := make([]byte, size)
	for i := range uint32(messages) {
		binary.BigEndian.PutUint32(message, i)
		if _, err := c.Write(message); err != nil {
			return err
		}
	}
	return nil
}

func receive(c net.Conn) error {
	message := make([]byte, size)
	for i := range uint32(messages) {
		if _, err := io.ReadFull(c, message); err != nil {
			return err
		}
		if got := binary.BigEndian.Uint32(message); got != i {
			return fmt.Errorf("message %d came as number %d", got, i)
		}
	}
	return nil
}

// TestProxyPassesOnWhatCameBeforeTheEnd: a server that replies and closes is no reason to lose its delayed reply.
func TestProxyPassesOnWhatCameBeforeTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := through(t, &Proxy{ReplyDelay: time.Second}, func(c net.Conn) { _, _ = c.Write([]byte("bye")) })
		if got, err := io.ReadAll(client); err != nil || string(got) != "bye" {
			t.Errorf("%q, %v", got, err)
		}
	})
}

// TestProxyLosesReplies: a client with the name gets about half of its replies, another one all. The replies fill the
// proxy's buffer at least 100 times, and each of these parts is lost or not.
func TestProxyLosesReplies(t *testing.T) {
	const replies = 100 * 64 << 10
	for name, some := range map[string]bool{"orders": true, "doctor": false} {
		synctest.Test(t, func(t *testing.T) {
			client := through(t, &Proxy{LoseOneIn: 2, LoseOf: "orders"}, func(c net.Conn) {
				request := make([]byte, len(name))
				if _, err := io.ReadFull(c, request); err == nil {
					_, _ = c.Write(make([]byte, replies))
				}
			})
			if _, err := io.WriteString(client, name); err != nil {
				t.Fatal(err)
			}
			got, err := io.Copy(io.Discard, client)
			if err != nil {
				t.Fatal(err)
			}
			if some && (got < replies/10 || got > replies*9/10) || !some && got != replies {
				t.Errorf("%s: %d of %d bytes", name, got, replies)
			}
		})
	}
}
