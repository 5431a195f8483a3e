//go:build linux

package engine

import (
	"io"

	"golang.org/x/sys/unix"

	"slowpath/internal/load/workload"
)

// send begins a call on a connection that has room for it.
func (w *worker) send(c *conn, intended int64) {
	if c.unconnected {
		w.dialAndSend(c, intended)
		return
	}
	w.countBegun()
	w.request(c, intended)
}

// request appends the request of a call that has begun.
func (w *worker) request(c *conn, intended int64) {
	w.stream.Due = intended
	out, q := w.stream.Next(w.draft(c))
	c.out = out
	c.push(intended, w.now, q)
	c.quota--
}

// sendAll is n times send, for a closed loop.
func (w *worker) sendAll(c *conn, n int) {
	if w.replayer != nil {
		w.sendDue(c.index)
		return
	}
	n = int(min(int64(n), c.quota))
	if w.remaining >= 0 {
		n = min(n, int(w.remaining))
		w.remaining -= int64(n)
	}
	c.quota -= int64(n)
	w.inFlight += int64(n)
	w.tally.Begun += int64(n)
	out := w.draft(c)
	var q workload.Request
	w.stream.Due = w.now
	for range n {
		out, q = w.stream.Next(out)
		c.push(w.now, w.now, q)
	}
	c.out = out
}

// countBegun counts a call that begins.
func (w *worker) countBegun() {
	w.inFlight++
	w.tally.Begun++
	if w.remaining > 0 {
		w.remaining--
	}
}

// connReady uses the room for one more call on c.
func (w *worker) connReady(c *conn) {
	switch {
	case w.remaining == 0 || c.quota == 0:
	case w.replayer != nil:
		w.sendDue(c.index)
	case w.arrivals == nil:
		w.send(c, w.now)
	case w.hasDue && w.due <= w.now: // it waited for a connection
		w.send(c, w.due)
		w.advance()
	default:
		w.idle.put(c)
	}
}

// advance goes to the next arrival of the schedule.
func (w *worker) advance() {
	var at int64
	at, w.hasDue = w.arrivals.next()
	w.due = w.r.start + at
}

// dispatch sends the calls that have become due, each on the connection that is idle for longest.
func (w *worker) dispatch() {
	if w.replayer != nil {
		w.sendAllDue()
	}
	if w.routing != nil {
		w.dispatchRouted()
		return
	}
	if w.arrivals == nil {
		return
	}
	for w.hasDue && w.due <= w.now && w.remaining != 0 && !w.idle.empty() {
		c := w.idle.take()
		if c.dead || c.quota == 0 {
			continue
		}
		_ = w.tally.Late.RecordValue(min(w.now-w.due, maxLatency)) // in range
		w.send(c, w.due)
		w.advance()
		w.flush(c)
		w.now = w.r.Clock.Now() // a system call later
	}
}

// maxReads bounds the reads of one turn of a connection, of up to bufferBytes each: a server that sends faster than
// this is read must not keep a worker from its other connections, its timeouts and its end.
const maxReads = 16

// receive reads until the socket is empty. What is left after maxReads is read when the other events were handled.
func (w *worker) receive(c *conn) {
	if c.secure != nil {
		w.receiveSecure(c)
		return
	}
	w.receivePlain(c, unix.MSG_DONTWAIT)
}

// receivePlain is receive without TLS; flags are those of the first read.
func (w *worker) receivePlain(c *conn, flags uintptr) {
	for turn := 0; !c.dead; turn++ {
		if turn == maxReads {
			w.receiveLater(c)
			return
		}
		kept := copy(w.buf, c.carry)
		if kept == len(w.buf) {
			w.buf = append(w.buf, make([]byte, len(w.buf))...)
		}
		w.tally.Reads++
		n, errno := read(c.fd, w.buf[kept:], flags)
		flags = unix.MSG_DONTWAIT
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
		if c.routed == nil { // a routed load writes after all events
			w.flush(c)
		}
		if kept+n < len(w.buf) && !c.ending {
			return // a stream socket that gave less than was asked for is empty (epoll(7))
		}
	}
}

// receiveLater notes that there is more to read than one turn allows. No event tells that again.
func (w *worker) receiveLater(c *conn) {
	if !c.unread {
		c.unread = true
		w.unread = append(w.unread, c)
		w.wakeUp()
	}
}

// receiveUnread gives each of these connections another turn.
func (w *worker) receiveUnread() {
	left := w.unread
	w.unread = nil
	for _, c := range left {
		c.unread = false
		if !c.dead && !c.unconnected {
			w.receive(c)
		}
	}
}

// group is calls of one op with the same times.
type group struct {
	op             uint16
	intended, sent int64
	n              int64
}

// replies counts the replies in b and sends the calls that have room now.
func (w *worker) replies(c *conn, b []byte) error {
	var g group
	freed := 0
	for len(b) > 0 {
		n, done, err := c.scan.next(b)
		if c.scan.keep {
			n = c.scan.whole(b, n, done)
		}
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
			if c.routed == nil || !w.needsRetry(c, c.scan.line) {
				w.refused(o, c.scan.line)
			}
		} else if c.scan.null && w.ops[f.op].Reads {
			o.Misses++
		}
		if c.scan.keep {
			w.verify(f, &c.scan)
		}
		if f.replies--; f.replies > 0 {
			continue
		}
		if c.routed != nil && w.finishRouted(c) {
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
	if c.routed != nil {
		w.completed(c, freed)
		return nil
	}
	if w.r.Batch && c.count > 0 {
		return nil
	}
	if w.r.Batch {
		freed = w.r.Pipeline
	}
	if w.arrivals == nil && !c.unconnected {
		w.sendAll(c, freed)
	} else {
		for range freed {
			w.connReady(c)
		}
	}
	if c.quota == 0 && c.count == 0 {
		w.retire(c)
	}
	return nil
}

func (w *worker) count(c *conn, g *group) {
	if g.n > 0 {
		w.tally.Ops[g.op].add(w.now-g.sent, w.now-g.intended, g.n)
		if w.now-g.intended >= w.r.SlowFrom.Load() {
			w.reportSlow(c, g)
		}
	}
}

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
	if n, known := w.tally.Errors[string(code)]; known { // does not allocate
		w.tally.Errors[string(code)] = n + 1
		return
	}
	countKind(w.tally.Errors, string(code), 1)
}
