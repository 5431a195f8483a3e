package target

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stampArrivals asks for the receive time of each segment. For TCP the kernel gives it since 4.17 (net/ipv4/tcp.c,
// tcp_recv_timestamp). While such a socket is open the kernel stamps every packet the host receives, some tens of ns
// each (net_enable_timestamp). A refusal is no error: the times are then missing.
func stampArrivals(fd uintptr) {
	_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
}

// cookieOf is the kernel's number of a socket, which no other socket ever has.
func cookieOf(fd uintptr) (cookie uint64, ok bool) {
	cookie, err := unix.GetsockoptUint64(int(fd), unix.SOL_SOCKET, unix.SO_COOKIE)
	return cookie, err == nil
}

// HoldStamps keeps the kernel's stamping of received packets enabled until release is called. The kernel enables it
// with a delay after the first such socket is opened, from a work queue (net/core/dev.c, net_enable_timestamp), and
// disables it with the last: on a machine with busy CPUs the replies of half a second had no time of arrival.
func HoldStamps() (release func()) {
	// a unix socket does not count (net/core/sock.c, sock_needs_netstamp)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		fd, err = unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	}
	if err != nil {
		return func() {} // the times are then missing
	}
	stampArrivals(uintptr(fd))
	return func() { _ = unix.Close(fd) }
}

// controlSpace holds the one control message asked for, an SCM_TIMESTAMPNS: a header and a timespec.
const controlSpace = 64

// receiver is one recvmsg under way. Its lock serializes readers as the net package does.
type receiver struct {
	mu      sync.Mutex
	buffer  []byte
	control [controlSpace]byte
	vector  unix.Iovec
	header  unix.Msghdr
	n       int
	arrival int64 // ns since 1970, 0 is unknown
	failed  error
	attempt func(fd uintptr) bool // r.receive, made once
}

// Read is recvmsg through the runtime's poller, so that deadlines and Close work as in the net package.
func (w *wire) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if w.raw == (noSocket{}) {
		return w.Conn.Read(p)
	}
	r := &w.receiver
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.attempt == nil {
		r.attempt = r.receive
	}
	r.buffer = p
	err := w.raw.Read(r.attempt)
	r.buffer, r.vector, r.header = nil, unix.Iovec{}, unix.Msghdr{} // else the caller's buffer stays alive
	switch {
	case err != nil:
		return 0, w.readError(err)
	case r.failed != nil:
		return 0, w.readError(os.NewSyscallError("recvmsg", r.failed))
	}
	w.arrived(r.arrival)
	if r.n == 0 {
		return 0, io.EOF
	}
	return r.n, nil
}

// receive returns false to make the poller wait until the socket is readable. It makes the system call itself, since
// unix.Recvmsg allocates memory for a sender's address at every call.
func (r *receiver) receive(fd uintptr) bool {
	for {
		r.vector.Base = &r.buffer[0]
		r.vector.SetLen(len(r.buffer))
		r.header = unix.Msghdr{Iov: &r.vector, Control: &r.control[0]}
		r.header.SetIovlen(1)
		r.header.SetControllen(len(r.control))
		n, _, errno := unix.Syscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&r.header)), 0)
		switch errno {
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			return false
		case 0:
			r.n, r.failed, r.arrival = int(n), nil, stampOf(r.control[:r.header.Controllen])
		default:
			r.n, r.failed = 0, errno
		}
		return true
	}
}

// arrived notes a read that has just returned.
func (w *wire) arrived(arrival int64) {
	if arrival != 0 {
		w.delay.Store(max(0, time.Now().UnixNano()-arrival))
	}
	w.arrival.Store(arrival)
}

// readError is the *net.OpError that net.Conn's own Read would return.
func (w *wire) readError(err error) error {
	var op *net.OpError
	if errors.As(err, &op) { // of RawConn, a "raw-read"
		err = op.Err
	}
	return &net.OpError{Op: "read", Net: w.LocalAddr().Network(), Source: w.LocalAddr(), Addr: w.RemoteAddr(), Err: err}
}

// stampOf finds the SCM_TIMESTAMPNS in ns since 1970; 0 if there is none. Its two fields have the width of C's long
// (struct __kernel_old_timespec).
func stampOf(control []byte) int64 {
	for len(control) >= unix.CmsgLen(0) {
		header, data, rest, err := unix.ParseOneSocketControlMessage(control)
		if err != nil {
			return 0
		}
		if header.Level == unix.SOL_SOCKET && header.Type == unix.SCM_TIMESTAMPNS {
			return timespecNanos(data)
		}
		control = rest
	}
	return 0
}

func timespecNanos(data []byte) int64 {
	order := binary.NativeEndian
	switch {
	case len(data) >= 16:
		return int64(order.Uint64(data))*1e9 + int64(order.Uint64(data[8:]))
	case len(data) >= 8:
		return int64(int32(order.Uint32(data)))*1e9 + int64(order.Uint32(data[4:]))
	}
	return 0
}

// PeerPID is the process at the other end of a unix socket (SO_PEERCRED): the one that called listen, so after a fork
// perhaps the parent. False for TCP, and for a process outside this pid namespace.
func (c *Conn) PeerPID() (pid int, ok bool) {
	if c.target.Network != "unix" {
		return 0, false
	}
	err := c.wire.raw.Control(func(fd uintptr) {
		if peer, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(peer.Pid)
		}
	})
	return pid, err == nil && pid > 0
}
