package resp

import (
	"bytes"
	"errors"
	"io"
)

const (
	initialBufferBytes = 16 << 10 // what a socket usually delivers at most in one read
	errorTextBytes     = 256      // how much of an error Skip keeps; a redirect or a code fits many times
)

// Reader reads replies one after the other. It has its own buffer and reads ahead; it is not safe for use by several
// goroutines.
//
// An error between two replies (the peer closed: [io.EOF]; a read deadline passed) leaves the Reader usable. An error
// within a reply (the peer closed: [io.ErrUnexpectedEOF]) or of the protocol does not: every later call returns it.
type Reader struct {
	src    io.Reader
	srcErr error // came from src together with the last bytes, not yet returned
	lim    Limits

	buf      []byte
	pos, end int // buf[pos:end] has arrived and is not consumed

	replyBytes int64 // consumed of the current reply
	elements   int64 // declared by the current reply
	earlier    int64 // bytes that replies before it took of the same limit, see Replies
	weight     int64 // of MaxReplyBytes: what its values take in memory, and earlier
	stack      []int64
	errorText  [errorTextBytes]byte
	broken     error
}

// NewReader returns a Reader of what src delivers.
func NewReader(src io.Reader, lim Limits) *Reader {
	r := &Reader{lim: lim.withDefaults(), buf: make([]byte, initialBufferBytes)}
	r.Reset(src)
	return r
}

// Reset drops all buffered bytes and errors and continues with src, keeping buffer and limits.
func (r *Reader) Reset(src io.Reader) {
	r.src, r.srcErr, r.broken = src, nil, nil
	r.pos, r.end, r.replyBytes, r.elements, r.earlier = 0, 0, 0, 0, 0
}

// Buffered returns the number of bytes that have arrived and are not part of a reply read so far.
func (r *Reader) Buffered() int { return r.end - r.pos }

// begin starts a reply.
func (r *Reader) begin() error {
	r.replyBytes, r.elements, r.weight = 0, 0, r.earlier
	return r.broken
}

// failed converts an error within a reply, and keeps it for later calls unless the Reader stays usable.
func (r *Reader) failed(err error) error {
	if r.broken != nil {
		return r.broken
	}
	inside := r.replyBytes > 0 || r.Buffered() > 0
	if err == io.EOF && inside {
		err = io.ErrUnexpectedEOF
	}
	if r.replyBytes > 0 || err == io.ErrUnexpectedEOF || isFormatError(err) {
		r.broken = err
	}
	return err
}

func isFormatError(err error) bool {
	return errors.Is(err, ErrProtocol) || errors.Is(err, ErrTooLarge) || errors.Is(err, ErrTooDeep) || errors.Is(err,
		ErrTooManyElements)
}

// fill reads once from the source, making room first.
func (r *Reader) fill() error {
	if r.srcErr != nil {
		err := r.srcErr
		r.srcErr = nil
		return err
	}
	if r.pos == r.end {
		r.pos, r.end = 0, 0
	}
	if r.end == len(r.buf) {
		r.makeRoom()
	}
	for range 100 { // as bufio: a source that delivers nothing and no error is broken
		n, err := r.src.Read(r.buf[r.end:])
		r.end += n
		if n > 0 {
			r.srcErr = err
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// makeRoom moves the bytes that are not consumed to the front, or doubles a full buffer. Only line and need keep bytes
// unconsumed, so the buffer stays below twice the longest allowed line.
func (r *Reader) makeRoom() {
	if r.pos > 0 {
		r.end = copy(r.buf, r.buf[r.pos:r.end])
		r.pos = 0
		return
	}
	grown := make([]byte, 2*len(r.buf))
	r.end = copy(grown, r.buf[:r.end])
	r.buf = grown
}

// consume takes n bytes that have arrived.
func (r *Reader) consume(n int) {
	r.pos += n
	r.replyBytes += int64(n)
}

// taken is how much of MaxReplyBytes is used.
func (r *Reader) taken() int64 { return r.replyBytes + r.weight }

// need waits until n bytes have arrived; n is small.
func (r *Reader) need(n int) error {
	for r.Buffered() < n {
		if err := r.fill(); err != nil {
			return err
		}
	}
	return nil
}

// line consumes a line and returns it with its type byte and without its end. It is valid until the next fill. A lone
// CR or LF is part of the line, as it is for hiredis: servers before 6 let scripts put them in errors.
func (r *Reader) line() ([]byte, error) {
	scanned := 0
	for {
		arrived := r.buf[r.pos:r.end]
		for {
			i := bytes.IndexByte(arrived[scanned:], '\n')
			if i < 0 {
				scanned = len(arrived)
				break
			}
			at := scanned + i
			if at > 0 && arrived[at-1] == '\r' {
				return r.checkedLine(arrived[:at+1])
			}
			scanned = at + 1
		}
		if len(arrived) > r.lim.MaxLineBytes+2 { // type byte, line, and its CR
			return nil, r.lineTooLong()
		}
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
}

// checkedLine consumes a whole line with its end, if it is within the limits.
func (r *Reader) checkedLine(whole []byte) ([]byte, error) {
	line := whole[:len(whole)-2]
	if len(line)-1 > r.lim.MaxLineBytes {
		return nil, r.lineTooLong()
	}
	if r.taken()+int64(len(whole)) > r.lim.MaxReplyBytes {
		return nil, r.replyTooLarge()
	}
	r.consume(len(whole))
	return line, nil
}
