package workload

import (
	"math"
	"time"
)

// ReplayStream plays the requests of some of the log's clients, in the order of the log. It is not safe for concurrent
// use.
type ReplayStream struct {
	r     *Replay
	left  []uint32 // entries that are still to be played
	speed float64
}

// Streams parts the first most requests of the log among count streams; most 0: all. The requests of one client of the
// log are all in one stream, so that their order is kept. A speed of 2 is twice as fast as the log, 1 its own pace; at
// 0 all is due at once.
func (r *Replay) Streams(count int, most int64, speed float64) []*ReplayStream {
	entries := r.entries
	if most > 0 && most < int64(len(entries)) {
		entries = entries[:most]
	}
	n := uint32(max(count, 1))
	sizes := make([]int, n)
	for i := range entries {
		sizes[entries[i].client%n]++
	}
	streams, all := make([]*ReplayStream, n), make([]uint32, len(entries))
	for i, size := range sizes {
		streams[i] = &ReplayStream{r: r, left: all[:0:size], speed: speed}
		all = all[size:]
	}
	for i := range entries {
		s := streams[entries[i].client%n]
		s.left = append(s.left, uint32(i))
	}
	return streams
}

// Left is how many requests are still to be played.
func (s *ReplayStream) Left() int { return len(s.left) }

// Due is when the next request is due, after the start of the replay; false when there is none left.
func (s *ReplayStream) Due() (due time.Duration, ok bool) {
	if len(s.left) == 0 {
		return 0, false
	}
	return s.r.dueAt(s.left[0], s.speed), true
}

func (r *Replay) dueAt(entry uint32, speed float64) time.Duration {
	if speed == 0 {
		return 0
	}
	return time.Duration(min(float64(r.entries[entry].due)/speed, math.MaxInt64/2))
}

// Next appends the next request, which there must be, to dst. It does not allocate but to make dst longer.
func (s *ReplayStream) Next(dst []byte) ([]byte, Request) {
	e := &s.r.entries[s.left[0]]
	dst = append(dst, s.r.encoded(s.left[0])...)
	s.left = s.left[1:]
	return dst, e.Request
}

// Skip leaves the next request out.
func (s *ReplayStream) Skip() { s.left = s.left[1:] }

// encoded is the bytes of a request.
func (r *Replay) encoded(entry uint32) []byte {
	end := len(r.bytes)
	if next := int(entry) + 1; next < len(r.entries) {
		end = r.entries[next].start
	}
	return r.bytes[r.entries[entry].start:end]
}

// PlayedIn is how long the first most requests (0: all) take at a speed, from the first to the last; 0 where they have
// no pace.
func (r *Replay) PlayedIn(most int64, speed float64) time.Duration {
	n := int64(len(r.entries))
	if most > 0 {
		n = min(n, most)
	}
	if n == 0 {
		return 0
	}
	return r.dueAt(uint32(n-1), speed)
}
