package resp

import "bytes"

const (
	// The most that is allocated for a declared size before its data has arrived; beyond it memory grows with the data.
	maxElementsAhead  = 16
	maxBlobBytesAhead = 64 << 10
)

// Read reads one reply. An error reply is a Value, not an error: see [Value.Err].
func (r *Reader) Read() (Value, error) {
	if err := r.begin(); err != nil {
		return Value{}, err
	}
	v, err := r.value(0)
	if err != nil {
		return Value{}, r.failed(err)
	}
	return v, nil
}

// Replies reads n replies, without the push messages between them. All that arrives for them may take as many bytes as
// MaxReplyBytes is for one reply. With an error it gives the replies before it.
func (r *Reader) Replies(n int, maxBytes int64) ([]Value, error) {
	usual := r.lim.MaxReplyBytes
	r.lim.MaxReplyBytes = maxBytes
	defer func() { r.lim.MaxReplyBytes, r.earlier = usual, 0 }()
	replies := make([]Value, 0, n)
	for len(replies) < n {
		v, err := r.Read()
		if err != nil {
			return replies, err
		}
		r.earlier = r.taken()
		if v.Kind != Push {
			replies = append(replies, v)
		}
	}
	return replies, nil
}

// value reads a value that is inside depth aggregates, and the attributes before it.
func (r *Reader) value(depth int) (Value, error) {
	h, err := r.header(depth)
	var attr []Value
	for err == nil && h.kind == Attribute {
		if attr, err = r.elems(attr, h.size, depth+1); err != nil {
			break
		}
		h, err = r.header(depth)
	}
	if err != nil {
		return Value{}, err
	}
	v := Value{Kind: h.kind, Int: h.int, Float: h.float, Attr: attr}
	switch {
	case h.kind.isBlob():
		v.Str, err = r.blob(h.size)
	case h.kind.isAggregate():
		v.Elems, err = r.elems(nil, h.size, depth+1)
	case h.kind == SimpleString || h.kind == Error || h.kind == BigNumber:
		v.Str = bytes.Clone(h.text)
	}
	return v, err
}

// elems appends n values to into.
func (r *Reader) elems(into []Value, n int64, depth int) ([]Value, error) {
	if into == nil && n > 0 {
		into = make([]Value, 0, min(n, maxElementsAhead))
	}
	for range n {
		v, err := r.value(depth)
		if err != nil {
			return nil, err
		}
		into = append(into, v)
	}
	return into, nil
}

// blob reads n bytes and the line end after them.
func (r *Reader) blob(n int64) ([]byte, error) {
	b := make([]byte, 0, min(n, maxBlobBytesAhead))
	for int64(len(b)) < n {
		if r.Buffered() == 0 {
			if err := r.fill(); err != nil {
				return nil, err
			}
		}
		if len(b) == cap(b) { // all of it has arrived, so as much again may be on the way
			b = append(make([]byte, 0, min(n, 2*int64(cap(b)))), b...)
		}
		take := min(cap(b)-len(b), r.Buffered())
		b = append(b, r.buf[r.pos:r.pos+take]...)
		r.consume(take)
	}
	return b, r.blobEnd()
}

// blobEnd consumes the line end after a blob.
func (r *Reader) blobEnd() error {
	if err := r.need(2); err != nil {
		return err
	}
	if r.buf[r.pos] != '\r' || r.buf[r.pos+1] != '\n' {
		return r.protocolError("no line end after a string of the declared size")
	}
	r.consume(2)
	return nil
}
