//go:build linux

// Package sink is a server that answers every command at once, with +OK or a value: with it a load generator reaches
// its own limit.
package sink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

var (
	ok = []byte("+OK\r\n")
	// A PING that comes alone is that of a tool which checks the server.
	ping, pong = []byte("*1\r\n$4\r\nPING\r\n"), []byte("+PONG\r\n")

	errNotCommand = errors.New("not a command")
)

// Serve answers on all connections of l, with one thread, until ctx ends: with a string of valueBytes, or +OK if that
// is 0.
func Serve(ctx context.Context, l *net.TCPListener, valueBytes int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if runtime.GOMAXPROCS(0) < 2 { // the thread that answers keeps its CPU
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	}
	s := &server{buf: make([]byte, 1<<20), conns: map[int32]*conn{}, reply: ok}
	if valueBytes > 0 {
		s.reply = fmt.Appendf(nil, "$%d\r\n%s\r\n", valueBytes, bytes.Repeat([]byte("x"), valueBytes))
	}
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	controlErr := raw.Control(func(fd uintptr) { s.listener, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	if err = errors.Join(err, controlErr); err != nil {
		return err
	}
	defer unix.Close(s.listener)
	if s.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("epoll_create1: %w", err)
	}
	defer s.close()
	if err := s.add(s.listener, 0); err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := s.iterate(); err != nil {
			return err
		}
	}
	return nil
}

type server struct {
	epoll, listener int
	conns           map[int32]*conn
	reply           []byte
	buf, out        []byte
	events          [256]unix.EpollEvent
}

// conn is the state of a request of which only a part has come.
type conn struct {
	carry []byte // less than a line
	skip  int    // bytes of an argument and its line end
	args  int    // arguments to come
}

func (s *server) add(fd int, events uint32) error {
	e := unix.EpollEvent{Events: unix.EPOLLIN | events, Fd: int32(fd)}
	return unix.EpollCtl(s.epoll, unix.EPOLL_CTL_ADD, fd, &e)
}

func (s *server) close() {
	for fd := range s.conns {
		unix.Close(int(fd))
	}
	unix.Close(s.epoll)
}

// iterate is one iteration of the event loop.
func (s *server) iterate() error {
	const timeout = 100 // ms, after which the caller checks its context
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(s.epoll), uintptr(unsafe.Pointer(&s.events[0])),
		uintptr(len(s.events)), timeout, 0, 0)
	if errno == unix.EINTR {
		return nil
	}
	if errno != 0 {
		return fmt.Errorf("epoll_wait: %w", errno)
	}
	for i := range n {
		fd := s.events[i].Fd
		if fd == int32(s.listener) {
			s.accept()
			continue
		}
		if !s.serve(int(fd), s.conns[fd]) {
			unix.Close(int(fd))
			delete(s.conns, fd)
		}
	}
	return nil
}

func (s *server) accept() {
	fd, _, err := unix.Accept4(s.listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
	if err != nil {
		return
	}
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	s.conns[int32(fd)] = &conn{}
	if s.add(fd, unix.EPOLLET) != nil {
		unix.Close(fd)
		delete(s.conns, int32(fd))
	}
}

// serve reads and answers what has come. It returns false when the connection has ended.
func (s *server) serve(fd int, c *conn) bool {
	for {
		kept := copy(s.buf, c.carry)
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&s.buf[kept])),
			uintptr(len(s.buf)-kept), 0, 0, 0)
		if errno == unix.EAGAIN {
			return true
		}
		if errno != 0 || n == 0 {
			return false
		}
		in := s.buf[:kept+int(n)]
		calls, used, err := c.requests(in)
		if err != nil {
			return false
		}
		c.carry = append(c.carry[:0], in[used:]...)
		if bytes.Equal(in, ping) {
			if _, err := unix.Write(fd, pong); err != nil { // it fits into the empty buffer of the socket
				return false
			}
			return true
		}
		if !s.answer(fd, calls) {
			return false
		}
		if len(in) < len(s.buf) {
			return true
		}
	}
}

func (s *server) answer(fd, calls int) bool {
	for len(s.out) < calls*len(s.reply) {
		s.out = append(s.out, s.reply...)
	}
	for b := s.out[:calls*len(s.reply)]; len(b) > 0; {
		n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)),
			unix.MSG_NOSIGNAL, 0, 0)
		switch errno {
		case 0:
			b = b[n:]
		case unix.EAGAIN, unix.EINTR: // the client reads too slowly: wait for it
			p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
			_, _ = unix.Poll(p, 100)
		default:
			return false
		}
	}
	return true
}

// requests counts the requests that end in b, and returns how many bytes of b it has parsed.
func (c *conn) requests(b []byte) (calls, used int, err error) {
	for {
		take := min(c.skip, len(b)-used)
		used, c.skip = used+take, c.skip-take
		end := bytes.IndexByte(b[used:], '\n')
		if c.skip > 0 || end < 0 {
			return calls, used, nil
		}
		line := b[used : used+end+1]
		if len(line) < len("*1\r\n") {
			return calls, used, fmt.Errorf("%w: %q", errNotCommand, line)
		}
		n := 0
		for _, d := range line[1 : len(line)-2] {
			n = 10*n + int(d-'0')
		}
		switch {
		case c.args == 0 && line[0] == '*' && n > 0:
			c.args = n
		case c.args > 0 && line[0] == '$':
			c.skip = n + 2
			if c.args--; c.args == 0 {
				calls++ // when its last argument begins, which is enough for clients that send it whole
			}
		default:
			return calls, used, fmt.Errorf("%w: %q", errNotCommand, line)
		}
		used += len(line)
	}
}
