package protocol

import (
	"slices"
	"sync"
	"time"
)

// Slice sums up the operations that were due in one slice of time.
type Slice struct {
	Operations int64 `json:"operations"`
	Failed     int64 `json:"failed"` // of these: without a result at the first attempt, or not made in time
	Ns         int64 `json:"ns"`     // from when they were due until the application had a result
	MaxNs      int64 `json:"max_ns"` // of one of them
}

// Slices sums up operations by when they were due. An operation lasts until the application has a result: one that
// failed, or was not made since its worker was busy, lasts until the next success of its worker. So callers that wait,
// callers that fail at once and callers that call less are all seen to lose time.
type Slices struct {
	start time.Time
	every time.Duration

	mu   sync.Mutex
	sums []Slice
	all  []*Waits
}

// sliceLimit bounds the number of slices: a minute of 5 ms, or three hours of a second.
const sliceLimit = 12_000

// waitsLimit bounds the operations of a worker that wait for a result; further ones are not counted.
const waitsLimit = 1 << 16

// NewSlices returns slices of a length from start on; nil, which counts nothing, without a length.
func NewSlices(start time.Time, every time.Duration) *Slices {
	if every <= 0 {
		return nil
	}
	return &Slices{start: start, every: every}
}

// Waits are the operations of one worker that have no result yet.
type Waits struct {
	of  *Slices
	due []time.Time
}

// Worker returns the waits of a new worker.
func (s *Slices) Worker() *Waits {
	w := &Waits{of: s}
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all = append(s.all, w)
	}
	return w
}

// Due says that an operation is due. It waits until Succeeded.
func (w *Waits) Due(at time.Time) {
	if w.of == nil {
		return
	}
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	if len(w.due) < waitsLimit {
		w.due = append(w.due, at)
	}
}

// Succeeded says that the last operation that was due has a result, and so have those before it.
func (w *Waits) Succeeded(at time.Time) {
	if w.of == nil {
		return
	}
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	w.end(at, len(w.due)-1)
}

// end counts all operations that wait. The first of them failed.
func (w *Waits) end(at time.Time, failed int) {
	for i, due := range w.due {
		n := int64(0)
		if i < failed {
			n = 1
		}
		w.of.add(due, at.Sub(due), n)
	}
	w.due = w.due[:0]
}

// Add counts an operation that succeeded.
func (s *Slices) Add(due time.Time, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(due, took, 0)
}

func (s *Slices) add(due time.Time, took time.Duration, failed int64) {
	i := int(due.Sub(s.start) / s.every)
	if due.Before(s.start) || i >= sliceLimit {
		return
	}
	s.sums = grow(s.sums, i)
	s.sums[i].Operations++
	s.sums[i].Failed += failed
	s.sums[i].Ns += int64(max(took, 0))
	s.sums[i].MaxNs = max(s.sums[i].MaxNs, int64(took))
}

// Sums ends all operations that still wait, as failed, and returns the sums.
func (s *Slices) Sums(now time.Time) []Slice {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.all {
		w.end(now, len(w.due))
	}
	return slices.Clone(s.sums) // operations may still end
}
