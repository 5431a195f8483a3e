package resp

import (
	"bytes"
	"io"
)

// Bounds of what a Framer keeps of a message.
const (
	KeptArgs     = 8  // bulk strings of its outermost array
	KeptArgBytes = 24 // of each, and of a line
	// sizeLineBytes is the longest line that has to arrive whole: a size, a number.
	sizeLineBytes = 128
)

// Framer finds where messages end in bytes that arrive piece by piece, such as the segments of a capture. It has no
// buffer and waits for nothing: a message of any size takes the same memory. Unlike a [Reader] it can pass over bytes
// that nobody saw, within a bulk string. The zero value is not ready: see [NewFramer].
type Framer struct {
	requests bool   // arrays of bulk strings, or a line
	r        Reader // parses headers; its source is empty
	started  bool
	inLine   bool  // in a line of any length
	cr       bool  // its last byte was a CR
	blob     int64 // bytes of a bulk string still to come
	ends     int   // bytes of the line end after it still to come
	line     [sizeLineBytes]byte
	lineLen  int

	kind     Kind
	bytes    int64
	elements int64
	args     [KeptArgs][KeptArgBytes]byte
	argLen   [KeptArgs]uint8
	arg      int // index of the bulk string or line that is kept now; KeptArgs: none
	seen     int // bulk strings begun
}

// nothing is the source of a Framer's Reader.
type nothing struct{}

func (nothing) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// NewFramer returns a Framer of replies, or of requests: arrays of bulk strings, or inline commands.
func NewFramer(requests bool, lim Limits) *Framer {
	return &Framer{requests: requests, r: Reader{src: nothing{}, lim: lim.withDefaults()}}
}

// Reset forgets a message that has begun.
func (f *Framer) Reset() {
	f.started, f.inLine, f.cr, f.blob, f.ends, f.lineLen = false, false, false, 0, 0, 0
}

// Started reports whether a message has begun and not ended.
func (f *Framer) Started() bool { return f.started }

// Kind is that of the last message; 0 for an inline command.
func (f *Framer) Kind() Kind { return f.kind }

// Bytes is the size of the last message, or of what was seen of it until now.
func (f *Framer) Bytes() int64 { return f.bytes }

// Args is the number of bulk strings of the last request; of an inline command 1, or 0 where the line is empty.
func (f *Framer) Args() int { return f.seen }

// Arg is the beginning of a bulk string of the last message, or of its line without the type byte; at most
// KeptArgBytes, valid until the next Feed.
func (f *Framer) Arg(i int) []byte {
	if i < 0 || i >= KeptArgs {
		return nil
	}
	return f.args[i][:f.argLen[i]]
}

// Feed takes bytes up to the end of a message, and tells how many. done: a message has ended there. After an error the
// Framer has to be Reset at the beginning of a message.
func (f *Framer) Feed(b []byte) (n int, done bool, err error) {
	for n < len(b) {
		if !f.started {
			f.begin(b[n])
		}
		var took int
		switch {
		case f.inLine:
			took = f.feedLine(b[n:])
		case f.blob > 0:
			took = int(min(f.blob, int64(len(b)-n)))
			f.keep(b[n : n+took])
			if f.blob -= int64(took); f.blob == 0 {
				f.ends = 2
			}
		case f.ends > 0:
			if took = 1; b[n] != "\n\r"[f.ends-1] {
				return n, false, f.r.protocolError("no line end after a string of the declared size")
			}
			f.ends--
		default:
			took, err = f.feedHeader(b[n:])
		}
		n, f.bytes = n+took, f.bytes+int64(took)
		if err != nil {
			return n, false, err
		}
		if f.ended() {
			f.started = false
			return n, true, nil
		}
	}
	return n, false, nil
}

// Skip passes over bytes that were not seen. ok: they are all of one bulk string and the line end after it, so that it
// is known where the message goes on, or that it is done. After false the Framer has to be Reset.
func (f *Framer) Skip(n int64) (done, ok bool) {
	switch {
	case n <= 0:
		return false, true
	case !f.started || f.inLine || f.lineLen > 0 || f.blob == 0 && f.ends == 0:
		return false, false
	}
	f.arg = KeptArgs
	f.bytes += n
	if f.blob > 0 {
		take := min(n, f.blob)
		n -= take
		if f.blob -= take; f.blob == 0 {
			f.ends = 2
		}
	}
	take := min(n, int64(f.ends))
	f.ends -= int(take)
	if n > take {
		return false, false
	}
	done = f.ended()
	f.started = !done
	return done, true
}

func (f *Framer) begin(first byte) {
	f.Reset()
	f.started, f.kind, f.bytes, f.elements, f.arg, f.seen = true, 0, 0, 0, KeptArgs, 0
	f.argLen = [KeptArgs]uint8{}
	f.r.replyBytes, f.r.elements, f.r.weight, f.r.broken = 0, 0, 0, nil
	f.r.stack = append(f.r.stack[:0], 1)
	f.inLine = f.requests && first != '*'
	if f.inLine {
		f.arg = 0
	}
}

// ended closes what is complete, and reports whether all of the message is.
func (f *Framer) ended() bool {
	if f.inLine || f.blob > 0 || f.ends > 0 || f.lineLen > 0 {
		return false
	}
	for len(f.r.stack) > 0 && f.r.stack[len(f.r.stack)-1] == 0 {
		f.r.stack = f.r.stack[:len(f.r.stack)-1]
	}
	return len(f.r.stack) == 0
}

// feedLine takes bytes of a line of any length, of which only the beginning is kept.
func (f *Framer) feedLine(b []byte) int {
	from := 0
	for {
		i := bytes.IndexByte(b[from:], '\n')
		if i < 0 {
			f.keep(b)
			f.cr = b[len(b)-1] == '\r'
			return len(b)
		}
		at := from + i
		if at > 0 && b[at-1] == '\r' || at == 0 && f.cr || f.requests {
			f.keep(b[:at])
			f.endLine()
			return at + 1
		}
		from = at + 1
		if from == len(b) {
			f.keep(b)
			f.cr = false
			return len(b)
		}
	}
}

func (f *Framer) endLine() {
	f.inLine, f.cr = false, false
	f.r.stack[len(f.r.stack)-1]--
	if f.requests {
		if f.argLen[0] = uint8(len(bytes.TrimRight(f.Arg(0), "\r"))); f.argLen[0] > 0 {
			f.seen = 1
		}
	}
}

// keep keeps the beginning of what is read now, without a type byte.
func (f *Framer) keep(b []byte) {
	if f.arg >= KeptArgs {
		return
	}
	have := int(f.argLen[f.arg])
	f.argLen[f.arg] = uint8(have + copy(f.args[f.arg][have:], b))
}

// feedHeader takes bytes of the first line of a value.
func (f *Framer) feedHeader(b []byte) (took int, err error) {
	if f.lineLen == 0 && (b[0] == '+' || b[0] == '-' || b[0] == '(') && !f.requests {
		top := len(f.r.stack) - 1
		f.inLine, f.arg = true, KeptArgs
		if top == 0 {
			f.kind, f.arg = kindOf[b[0]], 0
		}
		return 1, nil
	}
	i := bytes.IndexByte(b, '\n')
	took = i + 1
	if i < 0 {
		took = len(b)
	}
	if f.lineLen+took > len(f.line) {
		return took, f.r.protocolError("a size of more than %d bytes", len(f.line))
	}
	f.lineLen += copy(f.line[f.lineLen:], b[:took])
	if i < 0 {
		return took, nil
	}
	return took, f.header(f.line[:f.lineLen])
}

// header takes the whole first line of a value.
func (f *Framer) header(line []byte) error {
	f.lineLen = 0
	verbatim := line[0] == '='
	if verbatim {
		line[0] = '$' // the Reader would look at the text behind the line, too
	}
	top := len(f.r.stack) - 1
	f.r.buf, f.r.pos, f.r.end = line, 0, len(line)
	h, err := f.r.header(top)
	f.r.buf, f.r.pos, f.r.end = nil, 0, 0
	switch {
	case err != nil:
		return err
	case f.requests && (top == 0 && h.kind != Array && h.kind != Null || top > 0 && h.kind != BulkString):
		return f.r.protocolError("a request with a %s", h.kind)
	case h.kind == Attribute:
		f.r.stack = append(f.r.stack, h.size)
		return nil
	}
	f.r.stack[top]--
	if top == 0 {
		if f.kind = h.kind; verbatim {
			f.kind = Verbatim
		}
	}
	f.arg = KeptArgs
	switch {
	case h.kind.isAggregate():
		f.r.stack = append(f.r.stack, h.size)
	case h.kind.isBlob():
		if top <= 1 && f.seen < KeptArgs {
			f.arg = f.seen
		}
		f.seen++
		if f.blob = h.size; f.blob == 0 {
			f.ends = 2
		}
	}
	return nil
}
