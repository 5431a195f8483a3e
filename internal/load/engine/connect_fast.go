//go:build linux

package engine

import (
	"context"
	"encoding/binary"
	"net/netip"
	"slices"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"slowpath/internal/wire/resp"
	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

// This file opens the first connections of a load: one goroutine opens all of them, with as few system calls as
// possible. A session in a goroutine of its own takes four times as many, and wakes one or two threads. Everything else
// is left to dial, which also reports errors: TLS, unix sockets, names to resolve, error replies, failures. None of the
// system calls blocks, so that the Go scheduler need not be notified of them.

// connSpec is a connection that is to be opened.
type connSpec struct {
	to       target.Target
	worker   *worker
	index    int
	optional bool // its failure is no error
}

const (
	// maxConnecting is how many connections are opened at a time.
	maxConnecting = 64
	// pollTimeout bounds the wait for any of them, so that the end of the context is noticed.
	pollTimeout = 50 * time.Millisecond
	// slowConnect is far below the time after which a lost SYN is retransmitted: 1 s (TCP_TIMEOUT_INIT,
	// include/net/tcp.h), unless a BPF program changes it.
	slowConnect = 10 * time.Millisecond
)

// connectFast opens the connections that it can, and returns the others.
func (r *run) connectFast(ctx context.Context, specs []connSpec) (left []connSpec) {
	q := fastConnect{run: r, logins: map[string]login{}}
	for len(specs) > 0 || len(q.connecting) > 0 {
		if ctx.Err() != nil || q.unusual {
			break
		}
		if len(specs) == 0 || len(q.connecting) == maxConnecting {
			q.wait()
			continue
		}
		q.begin(specs[0])
		specs = specs[1:]
		if len(q.connecting) > 0 { // the first of them may be open by now
			q.advance(q.connecting[0])
		}
		q.removeDone()
	}
	for _, o := range q.connecting {
		unix.Close(o.fd)
		q.left = append(q.left, o.connSpec)
	}
	return append(q.left, specs...)
}

// fastConnect is the state of connectFast.
type fastConnect struct {
	run        *run
	logins     map[string]login // by address
	connecting []*connecting
	left       []connSpec
	unusual    bool // something failed, and would fail for the others as well
	buf        [4096]byte
}

// login is the first requests on a connection.
type login struct {
	request []byte
	replies int
}

// connecting is a connection that is being opened.
type connecting struct {
	connSpec
	login
	fd        int
	started   time.Time
	connected time.Duration // since started; 0: not connected yet
	clock     int64         // of its start
	scan      scanner
	rest      []byte // read, not a whole line yet
	done      bool   // it was delivered or given up
}

// begin creates a socket, connects it and sends the login.
func (q *fastConnect) begin(p connSpec) {
	o := &connecting{connSpec: p, fd: -1, started: time.Now(), clock: q.run.Clock.Now()}
	at, size := addressOf(p.to)
	if size == 0 {
		q.left = append(q.left, p)
		return
	}
	fd, _, errno := unix.RawSyscall(unix.SYS_SOCKET, uintptr(at.Addr.Family),
		unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if errno != 0 {
		q.left = append(q.left, p)
		return
	}
	o.fd = int(fd)
	q.connecting = append(q.connecting, o)
	setOptions(o.fd, p.to)
	o.login = q.loginOf(p.to)
	if _, _, errno := unix.RawSyscall(unix.SYS_CONNECT, fd, uintptr(unsafe.Pointer(&at)), size); errno != 0 &&
		errno != unix.EINPROGRESS {
		q.giveUp(o)
		return
	}
	q.advance(o)
}

// addressOf gives a socket address in the form of the kernel, and its size: 0 for what connectFast leaves to dial.
func addressOf(t target.Target) (at unix.RawSockaddrAny, size uintptr) {
	ip, err := netip.ParseAddr(t.Host)
	if t.TLS != nil || t.Sentinel != "" || t.Network != "tcp" || err != nil || ip.Zone() != "" || t.Port < 1 ||
		t.Port > 65535 {
		return at, 0
	}
	port := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, uint16(t.Port)))
	if ip.Unmap().Is4() {
		*(*unix.RawSockaddrInet4)(unsafe.Pointer(&at)) = unix.RawSockaddrInet4{
			Family: unix.AF_INET, Port: port,
			Addr: ip.Unmap().As4(),
		}
		return at, unix.SizeofSockaddrInet4
	}
	*(*unix.RawSockaddrInet6)(unsafe.Pointer(&at)) = unix.RawSockaddrInet6{
		Family: unix.AF_INET6, Port: port,
		Addr: ip.As16(),
	}
	return at, unix.SizeofSockaddrInet6
}

// setOptions sets the options that net.Dialer sets: TCP_NODELAY, and keep-alive to other hosts.
func setOptions(fd int, t target.Target) {
	set := func(level, option uintptr, value int32) { // does not fail for a TCP socket
		_, _, _ = unix.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), level, option, uintptr(unsafe.Pointer(&value)),
			unsafe.Sizeof(value), 0)
	}
	set(unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if ip, err := netip.ParseAddr(t.Host); err == nil && ip.Unmap().IsLoopback() {
		return
	}
	const idle, every, probes = 15, 15, 9 // seconds, as net.KeepAliveConfig has them
	set(unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
	set(unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, idle)
	set(unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, every)
	set(unix.IPPROTO_TCP, unix.TCP_KEEPCNT, probes)
}

func (q *fastConnect) loginOf(t target.Target) login {
	l, known := q.logins[t.Addr()]
	if !known {
		l.request, l.replies = session.Login(t, clientName)
		if q.run.readOnly() {
			l.request, l.replies = resp.AppendCommand(l.request, "READONLY"), l.replies+1
		}
		q.logins[t.Addr()] = l
	}
	return l
}

// advance continues with a connection as far as it can without blocking.
func (q *fastConnect) advance(o *connecting) {
	if o.done {
		return
	}
	if o.connected == 0 {
		n, errno := write(o.fd, o.request)
		switch {
		case errno == unix.EAGAIN:
			return // the TCP handshake is not done
		case errno != 0 || n < len(o.request):
			q.giveUp(o)
			return
		}
		o.connected = max(time.Since(o.started), 1)
		return // the reply is not there yet
	}
	for !o.done {
		n, errno := read(o.fd, q.buf[:], unix.MSG_DONTWAIT)
		late := time.Since(o.started)-o.connected >= session.DefaultTimeout // push messages may come without end
		switch {
		case late:
			q.giveUp(o)
			return
		case errno == unix.EINTR:
			continue
		case errno == unix.EAGAIN:
			return
		case errno != 0 || n == 0:
			q.giveUp(o)
			return
		}
		q.replied(o, append(o.rest, q.buf[:n]...))
	}
}

// replied reads replies to the login.
func (q *fastConnect) replied(o *connecting, b []byte) {
	for o.replies > 0 {
		n, done, err := o.scan.next(b)
		b = b[n:]
		if err != nil || done && (o.scan.kind == '-' || o.scan.kind == '!' || o.scan.line != nil) {
			q.giveUp(o)
			return
		}
		if !done {
			o.rest = slices.Clone(b)
			return
		}
		if o.scan.kind != '>' { // no push message
			o.replies--
		}
	}
	if len(b) > 0 { // more than the replies
		q.giveUp(o)
		return
	}
	q.deliver(o)
}

// deliver hands an open connection to its worker.
func (q *fastConnect) deliver(o *connecting) {
	d := dialed{index: o.index, fd: o.fd, start: o.clock, end: q.run.Clock.Now()}
	d.opening = session.Opening{Start: o.started, Connect: o.connected, Handshake: time.Since(o.started) - o.connected}
	if o.connected >= slowConnect {
		if info, err := unix.GetsockoptTCPInfo(o.fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			d.opening.SynRetrans = int64(info.Total_retrans)
		}
	}
	o.done = true
	o.worker.deliver(d)
}

// giveUp leaves this connection to dial, and those that were not begun, which would fail as well.
func (q *fastConnect) giveUp(o *connecting) {
	unix.Close(o.fd)
	o.done, q.unusual = true, true
	q.left = append(q.left, o.connSpec)
}

// removeDone removes the connections that are open or were given up.
func (q *fastConnect) removeDone() {
	q.connecting = slices.DeleteFunc(q.connecting, func(o *connecting) bool { return o.done })
}

// wait waits for an event on one of the connections.
func (q *fastConnect) wait() {
	fds := make([]unix.PollFd, len(q.connecting))
	for i, o := range q.connecting {
		fds[i] = unix.PollFd{Fd: int32(o.fd), Events: unix.POLLIN}
		if o.connected == 0 {
			fds[i].Events = unix.POLLOUT
		}
	}
	ready, _ := unix.Poll(fds, int(pollTimeout/time.Millisecond)) // interrupted: all are tried
	for i, o := range q.connecting {
		if ready <= 0 || fds[i].Revents != 0 {
			q.advance(o)
		}
	}
	q.removeDone()
}
