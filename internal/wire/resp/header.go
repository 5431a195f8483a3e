package resp

import "fmt"

// null is the size in a header of a RESP2 null.
const null = -1

// header is the first line of a value. Read and Skip both use it, so that they agree on what is valid.
type header struct {
	kind  Kind
	size  int64   // declared: bytes of a blob, elements (not pairs) of an aggregate, or null
	int   int64   // of an integer; of a boolean, 0 or 1
	float float64 // of a double
	text  []byte  // the line after the type byte, valid until the next fill
}

// header reads the first line of a value at the given depth (0 for the reply itself), and checks the declared sizes
// against the limits before the data has arrived.
func (r *Reader) header(depth int) (header, error) {
	if err := r.need(1); err != nil {
		return header{}, err
	}
	kind := kindOf[r.buf[r.pos]]
	if kind == 0 {
		if r.replyBytes == 0 {
			return header{}, r.foreign()
		}
		return header{}, r.protocolError("unknown type byte %q", r.buf[r.pos])
	}
	if kind == Push && depth > 0 {
		// Redis 6.0 could put an invalidation push between the elements of an EXEC reply, where no reader can
		// distinguish it from an element.
		return header{}, r.protocolError("a push inside another value")
	}
	line, err := r.line()
	if err != nil {
		return header{}, err
	}
	h := header{kind: kind, text: line[1:]}
	switch {
	case kind.isBlob():
		err = r.blobSize(&h)
	case kind.isAggregate():
		err = r.aggregateSize(&h, depth)
	default:
		err = r.scalar(&h)
	}
	return h, err
}

// blobSize reads and checks the declared bytes of a blob.
func (r *Reader) blobSize(h *header) error {
	if h.kind == BulkString && string(h.text) == "-1" {
		h.kind, h.size = Null, null
		return nil
	}
	size, ok := parseSize(h.text)
	if !ok {
		return r.protocolError("%s of size %q", h.kind, clip(h.text))
	}
	if size > r.lim.MaxBulkBytes {
		return fmt.Errorf("%w: %s of %d bytes, the limit is %d", ErrTooLarge, h.kind, size, r.lim.MaxBulkBytes)
	}
	if size > r.lim.MaxReplyBytes-r.taken()-2 {
		return r.replyTooLarge()
	}
	h.size = size
	if h.kind == Verbatim {
		return r.verbatimFormat(size)
	}
	return nil
}

// verbatimFormat checks that a verbatim string begins with its format, three bytes and a colon.
func (r *Reader) verbatimFormat(size int64) error {
	if size < 4 {
		return r.protocolError("verbatim string of size %d, too short for its format", size)
	}
	if err := r.need(4); err != nil {
		return err
	}
	if r.buf[r.pos+3] != ':' {
		return r.protocolError("verbatim string without its format")
	}
	return nil
}

// aggregateSize reads and checks the declared elements of an aggregate.
func (r *Reader) aggregateSize(h *header, depth int) error {
	if h.kind == Array && string(h.text) == "-1" {
		h.kind, h.size = Null, null
		return nil
	}
	size, ok := parseSize(h.text)
	if !ok {
		return r.protocolError("%s of size %q", h.kind, clip(h.text))
	}
	if depth >= r.lim.MaxDepth {
		return fmt.Errorf("%w: more than %d levels", ErrTooDeep, r.lim.MaxDepth)
	}
	room := r.lim.MaxElements - r.elements
	if h.kind == Attribute {
		room-- // for itself, or else endless empty attributes would be one reply
	}
	if h.kind.isPaired() {
		room >>= 1 // not /2: of -1 that is 0
	}
	if size > room || room < 0 {
		return fmt.Errorf("%w: %s of size %d, the limit is %d elements in all", ErrTooManyElements, h.kind, size,
			r.lim.MaxElements)
	}
	if h.kind.isPaired() {
		size *= 2
	}
	r.elements += size
	if h.kind == Attribute {
		r.elements++
	}
	h.size = size
	r.weight = r.earlier + r.elements*valueBytes
	if r.taken() > r.lim.MaxReplyBytes {
		return r.replyTooLarge()
	}
	return nil
}

// scalar parses a value that is its line.
func (r *Reader) scalar(h *header) error {
	ok := true
	switch h.kind {
	case Integer:
		h.int, ok = parseInt(h.text)
	case Double:
		h.float, ok = parseDouble(h.text)
	case Bool:
		ok = len(h.text) == 1 && (h.text[0] == 't' || h.text[0] == 'f')
		if ok && h.text[0] == 't' {
			h.int = 1
		}
	case BigNumber:
		ok = isBigNumber(h.text)
	case Null:
		ok = len(h.text) == 0
	}
	if !ok {
		return r.protocolError("%s %q", h.kind, clip(h.text))
	}
	return nil
}

// clip shortens a quoted text in a message.
func clip(b []byte) []byte { return b[:min(len(b), 40)] }

func (r *Reader) lineTooLong() error {
	return fmt.Errorf("%w: a line of more than %d bytes", ErrTooLarge, r.lim.MaxLineBytes)
}

func (r *Reader) replyTooLarge() error {
	return fmt.Errorf("%w: more than %d bytes in all", ErrTooLarge, r.lim.MaxReplyBytes)
}
