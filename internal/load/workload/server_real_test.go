package workload

import (
	"context"
	"net"
	"testing"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/wire/resp"
)

// start starts a real server.
func start(t *testing.T, name servers.Name) *fleet.Instance {
	t.Helper()
	return fleettest.Start(t, name, fleet.Spec{})
}

// client is a connection for tests. It is a Node.
type client struct {
	t    *testing.T
	conn net.Conn
	r    *resp.Reader
}

func dial(t *testing.T, i *fleet.Instance) *client {
	t.Helper()
	conn, err := net.Dial("tcp", i.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(5 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	return &client{t, conn, resp.NewReader(conn, resp.Limits{})}
}

// send sends encoded requests and gives as many replies.
func (c *client) send(requests []byte, replies int) []resp.Value {
	c.t.Helper()
	if _, err := c.conn.Write(requests); err != nil {
		c.t.Fatal(err)
	}
	out := make([]resp.Value, replies)
	for i := range out {
		v, err := c.r.Read()
		if err != nil {
			c.t.Fatal(err)
		}
		out[i] = v
	}
	return out
}

func (c *client) do(args ...string) resp.Value {
	c.t.Helper()
	return c.send(resp.AppendCommand(nil, args...), 1)[0]
}

func (c *client) Pipeline(_ context.Context, commands [][]string) ([]resp.Value, error) {
	var all []byte
	for _, args := range commands {
		all = resp.AppendCommand(all, args...)
	}
	return c.send(all, len(commands)), nil
}

func (c *client) setup(w *Workload) {
	c.t.Helper()
	for _, args := range w.Setup() {
		if err := c.do(args...).Err(); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *client) prefill(w *Workload) *Prefill {
	c.t.Helper()
	p := w.Prefill()
	for i := range 2 {
		var b []byte
		waiting, s := 0, p.Stream(1, i, 2)
		for more := true; more; {
			var r Request
			if b, r, more = s.Next(b); more {
				waiting += int(r.Replies)
			}
			if waiting < 200 && more {
				continue
			}
			for _, v := range c.send(b, waiting) {
				if err := v.Err(); err != nil {
					c.t.Fatalf("prefill: %v", err)
				}
			}
			b, waiting = b[:0], 0
		}
	}
	return p
}
