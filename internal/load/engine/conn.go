//go:build linux

package engine

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"slowpath/internal/load/workload"
)

// inflightCall is a call without a reply. Times are nanoseconds of the run's clock.
type inflightCall struct {
	intended, sent int64
	key            int64
	op             uint16
	replies        uint16 // still to come
}

// conn is a connection of a worker.
type conn struct {
	fd       int
	secure   *secure // nil: plain
	index    int     // in worker.conns
	inflight []inflightCall
	head     int // of inflight, a ring of a power of two
	count    int

	scan        scanner
	carry       []byte // read and not consumed: less than a line
	out         []byte // to be written
	full        bool   // the socket buffer is full; epoll reports when it has room
	ending      bool   // epoll reported the end of the stream, and will not again
	unread      bool   // it is in worker.unread
	dead        bool
	unconnected bool        // with PerCall, between two calls
	quota       int64       // calls that may still be sent on it
	attempts    int         // failed ones to connect again, while dead or unconnected
	blocking    bool        // the socket is blocking (blockingConn)
	routed      *routedConn // nil without routing
}

func newConn(fd, pipeline int) *conn {
	size := 1
	for size < pipeline {
		size *= 2
	}
	return &conn{fd: fd, inflight: make([]inflightCall, size)}
}

// push adds a call that is being sent. It sets field by field: a copy of a whole struct that was just written waits for
// its stores.
func (c *conn) push(intended, sent int64, q workload.Request) {
	f := c.last()
	f.intended, f.sent, f.key, f.op, f.replies = intended, sent, q.Key, q.Op, q.Replies
}

// last makes room for one more call.
func (c *conn) last() *inflightCall {
	f := &c.inflight[(c.head+c.count)&(len(c.inflight)-1)]
	c.count++
	return f
}

func (c *conn) first() *inflightCall { return &c.inflight[c.head] }

func (c *conn) pop() {
	c.head = (c.head + 1) & (len(c.inflight) - 1)
	c.count--
}

// read and write are system calls of which the Go scheduler is not notified. A read blocks unless flags have
// MSG_DONTWAIT, or the socket is non-blocking.
func read(fd int, b []byte, flags uintptr) (int, unix.Errno) {
	// recvfrom is cheaper than read, which also serves files.
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))),
		uintptr(len(b)), flags, 0, 0)
	return int(n), errno
}

func write(fd int, b []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))),
		uintptr(len(b)), unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT, 0, 0)
	return int(n), errno
}
