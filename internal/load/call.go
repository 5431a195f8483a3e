//go:build linux

package load

import (
	"errors"
	"io"
	"syscall"

	"golang.org/x/sys/unix"

	"slowpath/internal/target"
)

// send appends one request to a connection that has room for it.
func (w *worker) send(c *conn, intended int64) {
	out, q := w.stream.Next(c.out)
	c.out = out
	c.push(flight{intended: intended, sent: w.now, key: q.Key, op: q.Op, replies: q.Replies})
	w.inFlight++
	if w.left > 0 {
		w.left--
	}
}

// free says that c has room for one more call.
func (w *worker) free(c *conn) {
	switch {
	case w.left == 0:
	case w.arrivals == nil:
		w.send(c, w.now)
	case w.more && w.due <= w.now: // it was waiting for this
		w.send(c, w.due)
		w.advance()
	default:
		w.idle.put(c)
	}
}

// advance goes to the next arrival of the schedule.
func (w *worker) advance() {
	var at int64
	at, w.more = w.arrivals.next()
	w.due = w.r.start + at
}

// dispatch sends what has become due, each on the connection that has been idle for longest.
func (w *worker) dispatch() {
	if w.arrivals == nil {
		return
	}
	for w.more && w.due <= w.now && w.left != 0 && !w.idle.empty() {
		c := w.idle.take()
		if c.dead {
			continue
		}
		_ = w.tally.Late.RecordValue(min(w.now-w.due, longest)) // in range
		w.send(c, w.due)
		w.advance()
		w.flush(c)
	}
}

// flush writes what is to be written.
func (w *worker) flush(c *conn) {
	if len(c.out) == 0 || c.full || c.dead {
		return
	}
	w.tally.Writes++
	n, errno := write(c.fd, c.out)
	switch {
	case errno == unix.EAGAIN:
		c.full = true
	case errno != 0:
		w.lost(c, errno)
	case n < len(c.out):
		w.tally.BytesOut += int64(n)
		c.out = c.out[:copy(c.out, c.out[n:])]
		c.full = true
	default:
		w.tally.BytesOut += int64(n)
		c.out = c.out[:0]
	}
}

// receive reads until the socket is empty.
func (w *worker) receive(c *conn) {
	for !c.dead {
		kept := copy(w.buf, c.carry)
		if kept == len(w.buf) {
			w.buf = append(w.buf, make([]byte, len(w.buf))...)
		}
		w.tally.Reads++
		n, errno := read(c.fd, w.buf[kept:])
		switch {
		case errno == unix.EAGAIN:
			return
		case errno == unix.EINTR:
			continue
		case errno != 0:
			w.lost(c, errno)
			return
		case n == 0:
			w.lost(c, io.EOF)
			return
		}
		w.now = w.r.Clock.Now()
		w.tally.BytesIn += int64(n)
		if err := w.replies(c, w.buf[:kept+n]); err != nil {
			w.lost(c, err)
			return
		}
		w.flush(c)
		if kept+n < len(w.buf) {
			return // a stream socket that gave less than was asked for is empty (epoll(7))
		}
	}
}

// group is calls that ended at the same time and were sent and meant at the same.
type group struct {
	op             uint16
	intended, sent int64
	n              int64
}

// replies counts the replies in b and sends what may be sent for them.
func (w *worker) replies(c *conn, b []byte) error {
	var g group
	freed := 0
	for len(b) > 0 {
		n, done, err := c.scan.next(b)
		b = b[n:]
		if err != nil {
			w.count(c, &g)
			return err
		}
		if !done {
			break
		}
		if c.scan.kind == '>' {
			continue
		}
		if c.count == 0 {
			w.count(c, &g)
			return errUnasked
		}
		f := c.first()
		o := &w.tally.Ops[f.op]
		if c.scan.line != nil {
			w.refused(o, c.scan.line)
		} else if c.scan.null {
			o.Misses++
		}
		if f.replies--; f.replies > 0 {
			continue
		}
		if f.op != g.op || f.sent != g.sent || f.intended != g.intended {
			w.count(c, &g)
			g = group{op: f.op, intended: f.intended, sent: f.sent}
		}
		g.n++
		c.pop()
		freed++
	}
	w.count(c, &g)
	c.carry = append(c.carry[:0], b...)
	w.inFlight -= int64(freed)
	if w.r.Batch && c.count > 0 {
		return nil
	}
	if w.r.Batch {
		freed = w.r.Pipeline
	}
	for range freed {
		w.free(c)
	}
	return nil
}

func (w *worker) count(c *conn, g *group) {
	if g.n > 0 {
		w.tally.Ops[g.op].add(w.now-g.sent, w.now-g.intended, g.n)
		if w.now-g.intended >= w.r.SlowFrom.Load() {
			w.tellSlow(c, g)
		}
	}
}

var errUnasked = errors.New("a reply that nobody asked for")

// refused counts an error reply by its code.
func (w *worker) refused(o *OpTally, line []byte) {
	o.Errors++
	code := line
	for i, b := range line {
		if b == ' ' {
			code = line[:i]
			break
		}
	}
	w.tally.Errors[string(code)]++
}

// lost gives up a connection and the calls that were on it.
func (w *worker) lost(c *conn, err error) {
	c.dead = true
	unix.Close(c.fd)
	w.tally.Lost++
	w.inFlight -= int64(c.count)
	w.tally.Errors[errorKind(err)] += max(int64(c.count), 1)
	w.redial(c.index, 0)
}

// errorKind is what an error of a connection is counted as.
func errorKind(err error) string {
	var errno syscall.Errno
	switch {
	case err == io.EOF:
		return "closed by the server"
	case errors.Is(err, target.ErrTimeout):
		return "connecting: timeout"
	case errors.As(err, &errno):
		return errno.Error()
	}
	return err.Error()
}

// queue is a ring of connections with room, the longest idle first.
type queue struct {
	ring  []*conn
	head  int
	count int
}

func (q *queue) empty() bool { return q.count == 0 }

func (q *queue) put(c *conn) {
	if q.count == len(q.ring) {
		bigger := make([]*conn, max(64, 2*len(q.ring)))
		for i := range q.count {
			bigger[i] = q.ring[(q.head+i)%len(q.ring)]
		}
		q.ring, q.head = bigger, 0
	}
	q.ring[(q.head+q.count)%len(q.ring)] = c
	q.count++
}

func (q *queue) take() *conn {
	c := q.ring[q.head]
	q.head = (q.head + 1) % len(q.ring)
	q.count--
	return c
}
