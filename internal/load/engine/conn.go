//go:build linux

package engine

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"slowpath/internal/load/workload"
)

// flight is a call that has been sent. Times are nanoseconds of the run's clock.
type flight struct {
	intended, sent int64
	key            int64
	op             uint16
	replies        uint16 // still to come
}

// conn is a connection of a worker.
type conn struct {
	fd      int
	secure  *secure // nil: plain
	index   int     // in worker.conns
	flights []flight
	head    int // of flights, a ring of a power of two
	count   int

	scan     scanner
	carry    []byte // read, and not yet consumed: less than a line
	out      []byte // to be written
	full     bool   // the socket took less than all; epoll tells when it takes more
	ending   bool   // epoll told of the end of the stream, and will not tell again
	dead     bool
	away     bool  // a seat that connects for each call, and has no connection between them
	quota    int64 // calls that may still be sent on it
	attempts int   // to connect again that failed, while dead or away
	asleep   bool  // the socket was made one that waits
	link     *link // of a routed load, else nil
}

func newConn(fd, pipeline int) *conn {
	size := 1
	for size < pipeline {
		size *= 2
	}
	return &conn{fd: fd, flights: make([]flight, size)}
}

// push notes a call that is being sent. It fills the place field by field: a copy of a whole flight that has just been
// made waits for its parts.
func (c *conn) push(intended, sent int64, q workload.Request) {
	f := c.last()
	f.intended, f.sent, f.key, f.op, f.replies = intended, sent, q.Key, q.Op, q.Replies
}

// last makes place for one more call.
func (c *conn) last() *flight {
	f := &c.flights[(c.head+c.count)&(len(c.flights)-1)]
	c.count++
	return f
}

func (c *conn) first() *flight { return &c.flights[c.head] }

func (c *conn) pop() {
	c.head = (c.head + 1) & (len(c.flights) - 1)
	c.count--
}

// read and write are the system calls without the Go scheduler's part. A read waits unless flags have MSG_DONTWAIT, or
// the socket is non-blocking.
func read(fd int, b []byte, flags uintptr) (int, unix.Errno) {
	// recvfrom leaves out what read does for files.
	n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))),
		uintptr(len(b)), flags, 0, 0)
	return int(n), errno
}

func write(fd int, b []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))),
		uintptr(len(b)), unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT, 0, 0)
	return int(n), errno
}
