package fault

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"
)

// through starts a server that treats each connection by serve, a proxy before it, and a client of the proxy.
func through(t *testing.T, p *Proxy, serve func(net.Conn)) net.Conn {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		serve(c)
	}()
	p.Server = listener.Addr().String()
	addr, err := p.Start(t.Context(), testLab{t: t})
	if err != nil {
		t.Fatal(err)
	}
	client, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if err := client.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return client
}

// TestProxyDelaysEachDirection: data never comes earlier than the delay of its own direction, and the other direction
// has none. The upper bound is generous.
func TestProxyDelaysEachDirection(t *testing.T) {
	const delay = 2 * time.Second
	for name, p := range map[string]*Proxy{
		"neither":  {},
		"requests": {RequestDelay: delay},
		"replies":  {ReplyDelay: delay},
		"both":     {RequestDelay: delay, ReplyDelay: delay},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
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
			back, there := time.Now(), <-came
			for direction, d := range map[string]struct{ took, want time.Duration }{
				"request": {there.Sub(sent), p.RequestDelay},
				"reply":   {back.Sub(there), p.ReplyDelay},
			} {
				if d.took < d.want || d.took >= d.want+delay {
					t.Errorf("the %s took %v, want %v", direction, d.took, d.want)
				}
			}
		})
	}
}

// TestProxyDelayKeepsOrderAndThroughput sends 1 000 messages in one direction. Were one of them delayed after the
// other, they would take 100 s.
func TestProxyDelayKeepsOrderAndThroughput(t *testing.T) {
	const (
		messages = 1000
		size     = 64 << 10
		delay    = 100 * time.Millisecond
	)
	for name, p := range map[string]*Proxy{"requests": {RequestDelay: delay}, "replies": {ReplyDelay: delay}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			send := func(c net.Conn) error {
				message := make([]byte, size)
				for i := range uint32(messages) {
					binary.BigEndian.PutUint32(message, i)
					if _, err := c.Write(message); err != nil {
						return err
					}
				}
				return nil
			}
			receive := func(c net.Conn) error {
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
			if took := time.Since(start); took < delay || took > 30*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// TestProxyPassesOnWhatCameBeforeTheEnd: a server that replies and closes is no reason to lose its delayed reply.
func TestProxyPassesOnWhatCameBeforeTheEnd(t *testing.T) {
	client := through(t, &Proxy{ReplyDelay: 200 * time.Millisecond}, func(c net.Conn) { _, _ = c.Write([]byte("bye")) })
	if got, err := io.ReadAll(client); err != nil || string(got) != "bye" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestProxyDelaysNewConnections(t *testing.T) {
	const delay = 300 * time.Millisecond
	start := time.Now()
	client := through(t, &Proxy{AcceptDelay: delay}, func(c net.Conn) { _, _ = c.Write([]byte("x")) })
	if _, err := io.ReadFull(client, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < delay {
		t.Errorf("a connection to the server after %v", took)
	}
}

// TestProxyLosesReplies: a client with the name gets about half of its replies, another one all. The replies fill the
// proxy's buffer at least 100 times, and each of these parts is lost or not.
func TestProxyLosesReplies(t *testing.T) {
	const replies = 100 * 64 << 10
	for name, some := range map[string]bool{"orders": true, "doctor": false} {
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
	}
}
