package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"slowpath/internal/wire/resp"
)

// Limits of replies. A line is a simple reply or a header.
const (
	maxLine     = 64 << 10
	maxBulk     = 512 << 20 // proto-max-bulk-len of Redis
	maxElements = 1 << 31
	maxDepth    = 64
)

// scanner finds the ends of replies, in RESP2 and RESP3, and builds no values. Bytes of blobs are skipped as they
// arrive, so that no more than a line is kept between reads.
type scanner struct {
	skip int // remaining bytes of a blob and its line end
	// Remaining values at each level of the current reply; empty at the top. Those of attributes, which precede their
	// value, are negative and count up to 0.
	stack []int64
	keep  bool // reply is needed (see whole)
	memo  memo

	// Of the reply that ended last:
	kind byte // its first byte, without attributes
	null bool // it is null, or an aggregate without elements other than null
	// the text of an error, or of the first one in an aggregate such as that of EXEC; valid until the next call
	line  []byte
	reply []byte // with keep, all of it, valid until the next call
}

// memo is the last reply, if it had a header of at most 8 bytes and no levels. Most replies of a load are like the one
// before: with the same header they have the same length and kind.
type memo struct {
	header, mask uint64 // the header as a little-endian number, and the mask of its bytes
	size         int    // of the whole reply; 0: no memo
}

// fits: b begins with a reply like the one before.
func (m *memo) fits(b []byte) bool {
	return m.size > 0 && len(b) >= max(m.size, 8) && binary.LittleEndian.Uint64(b)&m.mask == m.header
}

// remember sets the memo to a reply of n bytes.
func (s *scanner) remember(b []byte, header, n int) {
	if header > 8 || len(b) < 8 || s.line != nil || s.kind == '>' || s.keep {
		return
	}
	mask := ^uint64(0) >> (64 - 8*header)
	s.memo = memo{binary.LittleEndian.Uint64(b) & mask, mask, n}
}

var crlf = []byte("\r\n")

// next consumes b up to the end of one reply; done: it has ended. Otherwise the bytes that were not consumed must be
// passed again, with more behind them.
func (s *scanner) next(b []byte) (n int, done bool, err error) {
	if s.memo.fits(b) {
		return s.memo.size, true, nil
	}
	s.memo.size = 0
	header := 0 // length of the header, of a reply with one value
	plain := s.skip == 0 && len(s.stack) == 0
	for {
		if s.skip > 0 {
			take := min(s.skip, len(b)-n)
			n, s.skip = n+take, s.skip-take
			if s.skip > 0 {
				return n, false, nil
			}
			if s.ended() {
				if plain {
					s.remember(b, header, n)
				}
				return n, true, nil
			}
		}
		end := bytes.IndexByte(b[n:], '\n')
		if end < 2 || b[n+end-1] != '\r' {
			if end, err = lineEnd(b[n:]); end < 0 || err != nil {
				return n, false, err
			}
		}
		size, blob, err := s.header(b[n : n+end-1])
		if err != nil {
			return n, false, err
		}
		switch {
		case blob:
			s.skip = size + len(crlf)
			n += end + 1
			plain, header = plain && header == 0, n
		default:
			n += end + 1
			plain, header = plain && header == 0, n
			switch {
			case size != 0:
				s.stack = append(s.stack, int64(size))
			case b[n-end-1] == '|':
			case s.ended():
				if plain {
					s.remember(b, header, n)
				}
				return n, true, nil
			}
		}
	}
}

// lineEnd finds the line feed that ends an unusual line, -1 where it is not in b. A single carriage return or line feed
// is part of the line: before Redis 6 scripts could put them into errors.
func lineEnd(b []byte) (int, error) {
	end := bytes.Index(b, crlf) + 1
	switch {
	case end == 0 && len(b) > maxLine:
		return -1, fmt.Errorf("%w: a line of more than %d bytes", resp.ErrProtocol, maxLine)
	case end == 0:
		return -1, nil
	case end < 2:
		return -1, fmt.Errorf("%w: %q where a reply was expected", resp.ErrProtocol, clip(b))
	}
	return end, nil
}

// header reads the first line of a value: the size of a blob in bytes, or the number of elements of an aggregate,
// negative for an attribute.
func (s *scanner) header(line []byte) (size int, blob bool, err error) {
	kind := line[0]
	top := len(s.stack) == 0
	if top {
		s.kind, s.null, s.line = kind, false, nil
	}
	switch kind {
	case '+', ':', ',', '#', '(':
		s.found()
		return 0, false, nil
	case '-':
		if top {
			s.line = line[1:]
		} else {
			s.failed(line[1:])
		}
		return 0, false, nil
	case '_':
		s.null = s.null || top
		return 0, false, nil
	case '$', '=', '!':
		n, err := number(line, maxBulk)
		if n < 0 {
			s.null = s.null || top
			return 0, false, err
		}
		if kind == '!' {
			s.failed([]byte("ERR"))
		}
		s.found()
		return n, true, err
	case '*', '~', '>':
		n, err := number(line, maxElements)
		s.null = s.null || top // until a value is found in it
		n = max(n, 0)
		return n, false, s.depth(n, err)
	case '%':
		n, err := number(line, maxElements/2)
		s.null = s.null || top
		return 2 * max(n, 0), false, s.depth(n, err)
	case '|':
		n, err := number(line, maxElements/2)
		return -2 * max(n, 0), false, s.depth(n, err)
	}
	return 0, false, fmt.Errorf("%w: %q where a reply was expected", resp.ErrProtocol, clip(line))
}

// found: the reply has a value other than null.
func (s *scanner) found() {
	if s.null && !s.describes() {
		s.null = false
	}
}

// failed keeps the first error of a reply.
func (s *scanner) failed(line []byte) {
	s.found()
	if s.line == nil && !s.describes() {
		s.line = bytes.Clone(line) // the rest of the reply may come with the next read
	}
}

// describes: the current value is part of an attribute.
func (s *scanner) describes() bool {
	for _, left := range s.stack {
		if left < 0 {
			return true
		}
	}
	return false
}

func (s *scanner) depth(n int, err error) error {
	if err == nil && n > 0 && len(s.stack) >= maxDepth {
		return fmt.Errorf("%w: more than %d levels", resp.ErrTooDeep, maxDepth)
	}
	return err
}

// ended counts a value that has ended; true: the reply has ended.
func (s *scanner) ended() bool {
	for top := len(s.stack) - 1; top >= 0; top-- {
		if s.stack[top] < 0 {
			if s.stack[top]++; s.stack[top] == 0 {
				s.stack = s.stack[:top]
			}
			return false // its value follows
		}
		s.stack[top]--
		if s.stack[top] > 0 {
			return false
		}
		s.stack = s.stack[:top]
	}
	return true
}

var errSize = errors.New("a size that is no number")

// number reads the size in a header; -1 is a null.
func number(line []byte, most int) (int, error) {
	if len(line) == 3 && line[1] == '-' && line[2] == '1' {
		return -1, nil
	}
	n := 0
	for _, c := range line[1:] {
		if c < '0' || c > '9' || n > most {
			return 0, fmt.Errorf("%w: %w: %q", resp.ErrProtocol, errSize, clip(line))
		}
		n = 10*n + int(c-'0')
	}
	if len(line) == 1 || n > most {
		return 0, fmt.Errorf("%w: size %q", resp.ErrProtocol, clip(line))
	}
	return n, nil
}

func clip(b []byte) []byte { return b[:min(len(b), 40)] }
