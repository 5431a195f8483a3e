// Package wiretest is a server in memory that answers what a test says: for what no real server can be made to do, and
// for tests in a bubble of testing/synctest, where time is the test's and sockets do not work.
package wiretest

import (
	"context"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"slowpath/internal/house/memnet"
	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/target"
)

// Server answers commands. Its methods may be called while it does.
type Server struct {
	reply   func(command string) string
	ended   chan struct{} // closed: the test is over
	serving sync.WaitGroup

	dial target.DialFunc

	mu    sync.Mutex
	conns map[net.Conn]bool
	down  bool
	going chan struct{} // closed: it answers
	asked int
}

// New makes a server that answers each command, its words separated by blanks, with what reply gives. With "" it closes
// the connection. The server ends with the test.
func New(t testing.TB, reply func(command string) string) *Server {
	s := &Server{
		reply: reply, conns: map[net.Conn]bool{}, going: make(chan struct{}), ended: make(chan struct{}),
	}
	close(s.going)
	l, dial := memnet.Listen(t)
	s.dial = dial
	go s.accept(l)
	t.Cleanup(func() {
		close(s.ended)
		s.Stop()
		s.serving.Wait()
	})
	return s
}

// Target is the address of a server that is reached by the context of Reached alone.
func (s *Server) Target() target.Target {
	return target.Target{Network: "tcp", Host: "192.0.2.1", Port: target.DefaultPort}
}

// Reached gives a context whose dials reach the server, whatever their address.
func (s *Server) Reached(ctx context.Context) context.Context {
	return target.WithDial(ctx, func(ctx context.Context, network, address string) (net.Conn, error) {
		s.mu.Lock()
		down := s.down
		s.mu.Unlock()
		if down {
			return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
		}
		return s.dial(ctx, network, address)
	})
}

func (s *Server) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.down {
			c.Close()
		} else {
			s.conns[c] = true
			s.serving.Go(func() { s.serve(c) })
		}
		s.mu.Unlock()
	}
}

func (s *Server) serve(c net.Conn) {
	defer c.Close()
	r := resp.NewReader(c, resp.Limits{})
	for {
		v, err := r.Read()
		if err != nil {
			return
		}
		var words []string
		for _, e := range v.Elems {
			words = append(words, e.Text())
		}
		s.mu.Lock()
		s.asked++
		going := s.going
		s.mu.Unlock()
		select {
		case <-going:
		case <-s.ended:
			return
		}
		text := s.reply(strings.Join(words, " "))
		if text == "" {
			return
		}
		if _, err := c.Write([]byte(text)); err != nil {
			return
		}
	}
}

// Asked is how many commands have come.
func (s *Server) Asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// Freeze has commands wait until the function that it gives is called, as those to a stopped process do.
func (s *Server) Freeze() (thaw func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	going := make(chan struct{})
	s.going = going
	return sync.OnceFunc(func() { close(going) })
}

// Stop closes all connections and refuses others until Start.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = true
	for c := range s.conns {
		c.Close()
	}
	clear(s.conns)
}

// Start has a stopped server answer again.
func (s *Server) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = false
}
