//go:build linux

package engine

import "slowpath/internal/load/workload"

// whole corrects the n bytes that next consumed: all bytes of a reply that has not ended must be passed again. A reply
// that has ended is in s.reply.
func (s *scanner) whole(b []byte, n int, done bool) int {
	if !done {
		s.stack, s.skip = s.stack[:0], 0
		return 0
	}
	s.reply = b[:n]
	return n
}

// verify checks a reply against its request.
func (w *worker) verify(f *inflightCall, s *scanner) {
	q := workload.Request{Op: f.op, Key: f.key, Replies: f.replies, Slot: -1}
	if err := w.stream.Check(q, s.reply); err != nil {
		countKind(w.tally.Mismatches, err.Error(), 1)
	}
}
