package codis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"slowpath/internal/wire/resp"
)

// request is a command on its way to a server.
type request struct {
	wire  []byte
	reply []byte // as it came
	err   error  // of the connection
	done  chan struct{}
	ended func() // called when it is done; nil: nothing to do
}

func newRequest(wire []byte) *request { return &request{wire: wire, done: make(chan struct{})} }

func (r *request) end(reply []byte, err error) {
	r.reply, r.err = reply, err
	if r.ended != nil {
		r.ended()
	}
	close(r.done)
}

func (r *request) ready() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// bytes waits for the reply; an error of the connection is an error reply.
func (r *request) bytes() []byte {
	<-r.done
	if r.err != nil {
		return fmt.Appendf(nil, "-ERR handle response, %s\r\n", r.err)
	}
	return r.reply
}

// value waits for the reply and parses it. An error reply is an error.
func (r *request) value() (resp.Value, error) {
	<-r.done
	if r.err != nil {
		return resp.Value{}, r.err
	}
	v, err := resp.NewReader(bytes.NewReader(r.reply), resp.DefaultLimits).Read()
	if err == nil {
		err = v.Err()
	}
	return v, err
}

// server is a server behind the proxy, with one connection that all clients share (backend_primary_parallel 1).
type server struct {
	addr     string
	requests chan *request
}

const (
	queued      = 4096 // requests that wait for a server, and those that it has not answered yet
	writeBytes  = 64 << 10
	dialTimeout = 5 * time.Second
)

func newServer(addr string) *server {
	return &server{addr: addr, requests: make(chan *request, queued)}
}

// run sends requests until ctx ends. A connection that breaks ends the requests on it with an error; the next request
// opens another one.
func (s *server) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case r := <-s.requests:
			conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", s.addr)
			if err != nil {
				r.end(nil, err)
				continue
			}
			s.use(ctx, conn, r)
		}
	}
}

// use sends requests on a connection until it breaks.
func (s *server) use(ctx context.Context, conn net.Conn, r *request) {
	sent, broken := make(chan *request, queued), make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		readReplies(conn, sent, func() { conn.Close(); close(broken) })
	})
	defer reader.Wait()
	defer close(sent)
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	out := make([]byte, 0, writeBytes)
	for {
		out = append(out[:0], r.wire...)
		sent <- r
		for more := true; more && len(out) < writeBytes && len(sent) < queued; {
			select {
			case r = <-s.requests:
				out = append(out, r.wire...)
				sent <- r
			default:
				more = false
			}
		}
		if _, err := conn.Write(out); err != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-broken:
			return
		case r = <-s.requests:
		}
	}
}

// readReplies gives replies to the requests that were sent, in their order, until no more are sent. After an error it
// calls broke once, and the requests get the error.
func readReplies(conn io.Reader, sent <-chan *request, broke func()) {
	f, buf, at, end := resp.NewFramer(false, resp.DefaultLimits), make([]byte, writeBytes), 0, 0
	var failed error
	for r := range sent {
		var reply []byte
		for done := false; !done && failed == nil; {
			if at == end {
				at = 0
				if end, failed = conn.Read(buf); failed != nil {
					break
				}
			}
			var n int
			n, done, failed = f.Feed(buf[at:end])
			reply, at = append(reply, buf[at:at+n]...), at+n
		}
		if failed != nil && broke != nil {
			broke()
			broke = nil
		}
		if errors.Is(failed, io.EOF) || errors.Is(failed, net.ErrClosed) {
			failed = errors.New("the server has closed the connection")
		}
		r.end(reply, failed)
	}
}

// ask sends a command and waits for its reply. An error reply is an error.
func (s *server) ask(ctx context.Context, args ...string) (resp.Value, error) {
	r := newRequest(resp.AppendCommand(nil, args...))
	select {
	case s.requests <- r:
	case <-ctx.Done():
		return resp.Value{}, ctx.Err()
	}
	v, err := r.value()
	if err != nil {
		return v, fmt.Errorf("%s of %s: %w", args[0], s.addr, err)
	}
	return v, nil
}
