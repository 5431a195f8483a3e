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

// This file opens the connections that a load begins with: one goroutine makes them all, with the system calls that
// each needs and no more. A session in a goroutine of its own takes four times as many, and wakes a thread or two. What
// is not as usual is left to dial, which also says what is wrong: TLS, unix sockets, names to be resolved, error
// replies, failures. None of the calls waits, so that the Go scheduler is not told of them.

// place is a seat that is to be filled.
type place struct {
	to     target.Target
	worker *worker
	seat   int
	may    bool // remain empty, if it cannot be filled
}

const (
	// atOnce is how many connections are being opened at a time.
	atOnce = 64
	// lookAgain bounds the wait for any of them, so that the end of the context is seen.
	lookAgain = 50 * time.Millisecond
	// slowConnect is long before a lost SYN is sent again: after 1 s (TCP_TIMEOUT_INIT, include/net/tcp.h), unless a
	// BPF program says otherwise.
	slowConnect = 10 * time.Millisecond
)

// quickly fills the places that it can, and gives back the others.
func (r *run) quickly(ctx context.Context, places []place) (left []place) {
	q := quick{run: r, logins: map[string]login{}}
	for len(places) > 0 || len(q.under) > 0 {
		if ctx.Err() != nil || q.odd {
			break
		}
		if len(places) == 0 || len(q.under) == atOnce {
			q.wait()
			continue
		}
		q.begin(places[0])
		places = places[1:]
		if len(q.under) > 0 { // the first of them may stand by now: then nobody has to wait for it
			q.advance(q.under[0])
		}
		q.sweep()
	}
	for _, o := range q.under {
		unix.Close(o.fd)
		q.left = append(q.left, o.place)
	}
	return append(q.left, places...)
}

// quick is quickly under way.
type quick struct {
	run    *run
	logins map[string]login // by address
	under  []*opening
	left   []place
	odd    bool // something was not as usual, and will be so again
	buf    [4096]byte
}

// login is what is said first on a connection.
type login struct {
	request []byte
	replies int
}

// opening is a connection that is being made.
type opening struct {
	place
	login
	fd        int
	started   time.Time
	connected time.Duration // since started; 0: it is not connected yet
	clock     int64         // when it began, by the clock
	scan      scanner
	rest      []byte // read, and not a whole line yet
	over      bool   // it was delivered, or given up
}

// begin makes the socket of a place, connects and says what is to be said first.
func (q *quick) begin(p place) {
	o := &opening{place: p, fd: -1, started: time.Now(), clock: q.run.Clock.Now()}
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
	q.under = append(q.under, o)
	setOptions(o.fd, p.to)
	o.login = q.loginOf(p.to)
	if _, _, errno := unix.RawSyscall(unix.SYS_CONNECT, fd, uintptr(unsafe.Pointer(&at)), size); errno != 0 &&
		errno != unix.EINPROGRESS {
		q.giveUp(o)
		return
	}
	q.advance(o)
}

// addressOf gives a socket address as the kernel has it, and its size: 0 for what quickly does not connect to.
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

// setOptions are those that net.Dialer sets: no Nagle; and a peer on another host that is silent is asked whether it is
// there.
func setOptions(fd int, t target.Target) {
	set := func(level, option uintptr, value int32) { // fails on no TCP socket
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

func (q *quick) loginOf(t target.Target) login {
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

// advance does with a connection what it can without waiting.
func (q *quick) advance(o *opening) {
	if o.over {
		return
	}
	if o.connected == 0 {
		n, errno := write(o.fd, o.request)
		switch {
		case errno == unix.EAGAIN:
			return // the handshake of TCP is under way
		case errno != 0 || n < len(o.request):
			q.giveUp(o)
			return
		}
		o.connected = max(time.Since(o.started), 1)
		return // no server is as fast
	}
	for !o.over {
		n, errno := read(o.fd, q.buf[:], unix.MSG_DONTWAIT)
		switch {
		case errno == unix.EINTR:
			continue
		case errno == unix.EAGAIN && time.Since(o.started)-o.connected < session.DefaultTimeout:
			return
		case errno != 0 || n == 0:
			q.giveUp(o)
			return
		}
		q.replied(o, append(o.rest, q.buf[:n]...))
	}
}

// replied takes what the server said.
func (q *quick) replied(o *opening, b []byte) {
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
	if len(b) > 0 { // more than was asked for
		q.giveUp(o)
		return
	}
	q.deliver(o)
}

// deliver seats a connection that stands.
func (q *quick) deliver(o *opening) {
	d := dialed{seat: o.seat, fd: o.fd, start: o.clock, end: q.run.Clock.Now()}
	d.opening = session.Opening{Start: o.started, Connect: o.connected, Handshake: time.Since(o.started) - o.connected}
	if o.connected >= slowConnect {
		if info, err := unix.GetsockoptTCPInfo(o.fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			d.opening.SynRetrans = int64(info.Total_retrans)
		}
	}
	o.over = true
	o.worker.deliver(d)
}

// giveUp leaves a place to dial, and those that have not been begun: they would fare alike.
func (q *quick) giveUp(o *opening) {
	unix.Close(o.fd)
	o.over, q.odd = true, true
	q.left = append(q.left, o.place)
}

// sweep forgets the connections that stand or were given up.
func (q *quick) sweep() {
	q.under = slices.DeleteFunc(q.under, func(o *opening) bool { return o.over })
}

// wait waits for something to come on one of the connections.
func (q *quick) wait() {
	fds := make([]unix.PollFd, len(q.under))
	for i, o := range q.under {
		fds[i] = unix.PollFd{Fd: int32(o.fd), Events: unix.POLLIN}
		if o.connected == 0 {
			fds[i].Events = unix.POLLOUT
		}
	}
	came, _ := unix.Poll(fds, int(lookAgain/time.Millisecond)) // interrupted, it looks at all
	for i, o := range q.under {
		if came <= 0 || fds[i].Revents != 0 {
			q.advance(o)
		}
	}
	q.sweep()
}
