package resp

import "bytes"

// foreigners are the first bytes of replies of other protocols. None of them can begin a RESP reply.
var foreigners = []struct{ prefix, hint string }{
	{"HTTP/", "the peer speaks HTTP, not the Redis protocol"},
	{"<html", "the peer speaks HTTP, not the Redis protocol"},
	{"<HTML", "the peer speaks HTTP, not the Redis protocol"},
	{"<!DOC", "the peer speaks HTTP, not the Redis protocol"},
	// a TLS alert, the reply of a TLS server to plain text
	{"\x15\x03", "the peer answered with a TLS record: it expects TLS; add --tls"},
	{"\x16\x03", "the peer answered with a TLS record: it expects TLS; add --tls"}, // a handshake
	{"SSH-", "the peer speaks SSH, not the Redis protocol"},
	// the reply of memcached to an unknown command
	{"ERROR\r\n", "the peer speaks the memcached protocol, not the Redis protocol"},
}

// foreign explains a first byte that begins no reply. While the bytes are a proper prefix of a known foreign reply it
// waits for more: the connection is unusable in any case, and the caller's deadline holds.
func (r *Reader) foreign() error {
	for {
		seen, undecided := r.buf[r.pos:r.end], false
		for _, f := range foreigners {
			if bytes.HasPrefix(seen, []byte(f.prefix)) {
				return &NotRedisError{Hint: f.hint}
			}
			undecided = undecided || bytes.HasPrefix([]byte(f.prefix), seen)
		}
		if !undecided || r.fill() != nil {
			return r.protocolError("unknown type byte %q", r.buf[r.pos])
		}
	}
}
