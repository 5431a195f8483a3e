//go:build linux

package load

import "slowpath/internal/workload"

// verify holds a reply against what was asked.
func (w *worker) verify(f *flight, s *scanner) {
	if s.body == nil && !s.null {
		return // a number, an error, or an array
	}
	if err := w.r.Verify(workload.Request{Op: f.op, Key: f.key, Replies: 1, Slot: -1}, s.body); err != nil {
		countKind(w.tally.Mismatches, err.Error(), 1)
	}
}
