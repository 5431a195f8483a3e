package workload

import (
	"math"
	"time"
)

// ReplayStream has the requests of some of the log's clients, in the order of the log. It is not safe for concurrent
// use.
type ReplayStream struct {
	r         *Replay
	remaining []uint32 // entries that were not sent
	speed     float64
}

// Streams distributes the first limit requests of the log to count streams; limit 0: all. The requests of one client
// are all in one stream, so that their order is kept. A speed of 2 is twice as fast as the log; at 0 all are due at
// once.
func (r *Replay) Streams(count int, limit int64, speed float64) []*ReplayStream {
	entries := r.entries
	if limit > 0 && limit < int64(len(entries)) {
		entries = entries[:limit]
	}
	n := uint32(max(count, 1))
	sizes := make([]int, n)
	for i := range entries {
		sizes[entries[i].client%n]++
	}
	streams, all := make([]*ReplayStream, n), make([]uint32, len(entries))
	for i, size := range sizes {
		streams[i] = &ReplayStream{r: r, remaining: all[:0:size], speed: speed}
		all = all[size:]
	}
	for i := range entries {
		s := streams[entries[i].client%n]
		s.remaining = append(s.remaining, uint32(i))
	}
	return streams
}

// Remaining is the number of requests that were not sent.
func (s *ReplayStream) Remaining() int { return len(s.remaining) }

// Due is when the next request is due, after the start of the replay; false without one.
func (s *ReplayStream) Due() (due time.Duration, ok bool) {
	if len(s.remaining) == 0 {
		return 0, false
	}
	return s.r.dueAt(s.remaining[0], s.speed), true
}

func (r *Replay) dueAt(entry uint32, speed float64) time.Duration {
	if speed == 0 {
		return 0
	}
	return time.Duration(min(float64(r.entries[entry].due)/speed, math.MaxInt64/2))
}

// Next appends the next request, which must exist, to dst. It allocates only to make dst longer.
func (s *ReplayStream) Next(dst []byte) ([]byte, Request) {
	e := &s.r.entries[s.remaining[0]]
	dst = append(dst, s.r.encoded(s.remaining[0])...)
	s.remaining = s.remaining[1:]
	return dst, e.Request
}

// Skip leaves the next request out.
func (s *ReplayStream) Skip() { s.remaining = s.remaining[1:] }

// encoded is a request in RESP.
func (r *Replay) encoded(entry uint32) []byte {
	e := &r.entries[entry]
	return r.bytes[e.start : e.start+int(e.size)]
}

// Lasts is how long the first limit requests (0: all) take at a speed, from the first to the last; 0 at speed 0.
func (r *Replay) Lasts(limit int64, speed float64) time.Duration {
	n := int64(len(r.entries))
	if limit > 0 {
		n = min(n, limit)
	}
	if n == 0 {
		return 0
	}
	return r.dueAt(uint32(n-1), speed)
}
