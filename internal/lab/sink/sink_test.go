//go:build linux

package sink

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

func serve(t *testing.T, valueBytes int) net.Conn {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- Serve(ctx, l, valueBytes) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		l.Close()
	})
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c
}

// However the requests are cut, each has one reply.
func TestAnswersEachRequest(t *testing.T) {
	const requests = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\na\r\nbc\r\n*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nGET\r\n$0\r\n\r\n"
	c := serve(t, 0)
	r := bufio.NewReader(c)
	for cut := range len(requests) {
		for _, part := range []string{requests[:cut], requests[cut:]} {
			if _, err := io.WriteString(c, part); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			if line, err := r.ReadString('\n'); line != "+OK\r\n" {
				t.Fatalf("cut at %d: %q, %v", cut, line, err)
			}
		}
	}
	if r.Buffered() > 0 {
		t.Error("more replies than requests")
	}
}

func TestClosesOnGarbage(t *testing.T) {
	for _, garbage := range []string{"\n", "GET / HTTP/1.1\r\n", "*1\r\n*1\r\n", strings.Repeat("$1\r\n", 3)} {
		c := serve(t, 0)
		if _, err := io.WriteString(c, garbage); err != nil {
			t.Fatal(err)
		}
		if b, _ := io.ReadAll(c); len(b) > 0 {
			t.Errorf("%q was answered: %q", garbage, b)
		}
	}
}

func TestAnswersWithValue(t *testing.T) {
	c := serve(t, 3)
	if _, err := io.WriteString(c, strings.Repeat("*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", 2)); err != nil {
		t.Fatal(err)
	}
	const want = "$3\r\nxxx\r\n$3\r\nxxx\r\n"
	b := make([]byte, len(want))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != want {
		t.Errorf("%q, %v", b, err)
	}
}
