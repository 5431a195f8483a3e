package resp

// Summary describes a skipped reply.
type Summary struct {
	Kind      Kind   // of the reply itself, not of its attributes
	Bytes     int64  // on the wire, attributes included
	Elements  int64  // declared at all levels; a map counts two for each pair, an attribute one more for itself
	ErrorText []byte // the first 256 bytes of an error reply, valid until the next call of the Reader; else nil
}

// Err returns a [*ServerError] for an error reply, else nil. It allocates, and stays valid.
func (s Summary) Err() error {
	if !s.Kind.IsError() {
		return nil
	}
	return newServerError(s.ErrorText)
}

// Skip reads one reply as [Reader.Read] does, with the same limits and errors, but keeps nothing of it. It does not
// allocate.
func (r *Reader) Skip() (Summary, error) {
	if err := r.begin(); err != nil {
		return Summary{}, err
	}
	var s Summary
	if err := r.skip(&s); err != nil {
		return Summary{}, r.failed(err)
	}
	s.Bytes, s.Elements = r.replyBytes, r.elements
	return s, nil
}

// skip walks the reply with a stack of the numbers of values still to come at each level.
func (r *Reader) skip(s *Summary) error {
	r.stack = append(r.stack[:0], 1)
	for len(r.stack) > 0 {
		top := len(r.stack) - 1
		if r.stack[top] == 0 {
			r.stack = r.stack[:top]
			continue
		}
		h, err := r.header(top)
		if err != nil {
			return err
		}
		if h.kind == Attribute {
			// The attribute's elements come first, then the value that it belongs to.
			r.stack = append(r.stack, h.size)
			continue
		}
		r.stack[top]--
		if top == 0 {
			s.Kind = h.kind
			if h.kind == Error {
				s.ErrorText = r.errorText[:copy(r.errorText[:], h.text)]
			}
		}
		switch {
		case h.kind.isAggregate():
			r.stack = append(r.stack, h.size)
		case h.kind.isBlob():
			if err := r.skipBlob(h, top == 0, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// skipBlob consumes the bytes of a blob and its line end, keeping the beginning of a blob error that is the reply
// itself.
func (r *Reader) skipBlob(h header, isReply bool, s *Summary) error {
	keep := 0
	if isReply && h.kind == BlobError {
		keep = errorTextBytes
	}
	kept := 0
	for left := h.size; left > 0; {
		if r.Buffered() == 0 {
			if err := r.fill(); err != nil {
				return err
			}
		}
		take := int(min(left, int64(r.Buffered())))
		kept += copy(r.errorText[kept:keep:keep], r.buf[r.pos:r.pos+take])
		r.consume(take)
		left -= int64(take)
	}
	if keep > 0 {
		s.ErrorText = r.errorText[:kept]
	}
	return r.blobEnd()
}
