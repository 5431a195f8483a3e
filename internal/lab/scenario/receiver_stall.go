package scenario

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

const (
	stallValueBytes = 2 << 20
	stallChunkBytes = 64 << 10
	stallChunkWork  = 10 * time.Millisecond
	stallRcvBuf     = 64 << 10 // SO_RCVBUF; the kernel doubles it (socket(7))
)

// receiverStall has clients that process a value of 2 MB while they read it, 64 kB every 10 ms. Their receive buffer
// fills, the window closes, and the server's kernel keeps the rest.
var receiverStall = Scenario{
	ID:    "receiver-stall",
	Cause: "receiver-stall",
	Title: "clients that read values of 2 MB slower than the server sends them",
	Fixes: []string{"read-then-process", "smaller-replies"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		if _, err := s.Do(ctx, "SET", "blob", strings.Repeat("v", stallValueBytes)); err != nil {
			return Scene{}, err
		}
		took, others := l.timings("GETs of 2 MB by slow readers"), l.timings("other callers")
		read := func(c *caller) error { return getSlowly(c, "blob") }
		switch {
		case l.Fixed("read-then-process"):
			read = func(c *caller) error { return getAtOnce(c, "blob") }
		case l.Fixed("smaller-replies"):
			read = func(c *caller) error { return getInWindows(c, "blob") }
		}
		const clients = 3
		for range clients {
			err := l.startCaller(ctx, net.Dialer{Control: smallReceiveBuffer}, s.Addr, 50*time.Millisecond,
				func(c *caller) error {
					return took.time(func() error { return read(c) })
				})
			if err != nil {
				return Scene{}, err
			}
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 500, Command: traffic.Mixed(10_000), Took: others.add})
		return Scene{Target: s.Addr}, nil
	},
}

// smallReceiveBuffer sets SO_RCVBUF before the connection is opened, when the window scale is negotiated.
func smallReceiveBuffer(_, _ string, c syscall.RawConn) error {
	var set error
	err := c.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, stallRcvBuf)
	})
	if err != nil {
		return err
	}
	return set
}

// getSlowly reads a value of stallValueBytes in chunks, with a pause after each.
func getSlowly(c *caller, key string) error {
	if _, err := fmt.Fprintf(c, "*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n", len(key), key); err != nil {
		return err
	}
	chunk := make([]byte, stallChunkBytes)
	left := len(fmt.Sprintf("$%d\r\n", stallValueBytes)) + stallValueBytes + len("\r\n")
	for left > 0 {
		n, err := io.ReadFull(c, chunk[:min(left, len(chunk))])
		if err != nil {
			return err
		}
		left -= n
		time.Sleep(stallChunkWork)
	}
	return nil
}

// stallChunks is how many chunks a value has.
const stallChunks = stallValueBytes / stallChunkBytes

// getAtOnce reads a value, and then works on it as long as getSlowly does.
func getAtOnce(c *caller, key string) error {
	if err := c.call("GET", key); err != nil {
		return err
	}
	time.Sleep(stallChunks * stallChunkWork)
	return nil
}

// getInWindows asks for a chunk at a time, and works on each before it asks for the next.
func getInWindows(c *caller, key string) error {
	for i := range stallChunks {
		from := i * stallChunkBytes
		if err := c.call("GETRANGE", key, itoa(from), itoa(from+stallChunkBytes-1)); err != nil {
			return err
		}
		time.Sleep(stallChunkWork)
	}
	return nil
}
