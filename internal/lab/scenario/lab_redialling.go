package scenario

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"time"

	"slowpath/internal/lab/clients"
)

// Redialling is a connection for each worker, which it replaces after callsPerDial calls, as clients with a maximum age
// of connections do. It dials the addresses of the server in order.
const Redialling clients.Name = "redialling"

const callsPerDial = 10

// silentFirst is an address that callers dial before the right one, and for how long.
type silentFirst struct {
	addr    string
	timeout time.Duration
}

// redialler is the connection of one worker.
type redialler struct {
	addr   string
	silent *atomic.Pointer[silentFirst]
	conn   *caller
	calls  int
}

// get reads a document, on a new connection where the one before has had its calls.
func (r *redialler) get(ctx context.Context, keys int) error {
	if r.calls++; r.calls%callsPerDial == 0 {
		r.close()
	}
	if r.conn == nil {
		if err := r.dial(ctx); err != nil {
			return err
		}
	}
	defer r.conn.endWith(ctx)()
	err := r.conn.call("GET", "doc:"+itoa(rand.IntN(max(1, keys))))
	if err != nil {
		r.close()
	}
	return err
}

func (r *redialler) dial(ctx context.Context) (err error) {
	if first := r.silent.Load(); first != nil {
		c, failed := dialCaller(ctx, net.Dialer{Timeout: first.timeout}, first.addr)
		if failed == nil {
			c.Close()
			return errors.New("the silent address answers")
		}
	}
	r.conn, err = dialCaller(ctx, net.Dialer{}, r.addr)
	return err
}

func (r *redialler) close() {
	if r.conn != nil {
		r.conn.Close()
		r.conn = nil
	}
}
