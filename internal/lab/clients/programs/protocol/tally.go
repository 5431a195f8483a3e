package protocol

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// tallyShards is how many counters a tally has, so that concurrent callers do not wait for each other.
const tallyShards = 64

// Tally counts calls. Its methods are safe for concurrent use.
type Tally struct {
	start  time.Time
	shards [tallyShards]shard
}

type shard struct {
	mu      sync.Mutex
	buckets []int64 // by bucketIndex
	seconds []Second
	kinds   map[string]int64
	last    string
	max     time.Duration
}

// kindLimit bounds the number of kinds in one shard; further kinds count as KindOther.
const kindLimit = 32

// NewTally returns a tally of the calls that begin at start or later.
func NewTally(start time.Time) *Tally { return &Tally{start: start} }

// Add counts a call that ends now. A nil error is a success; Kind says the kind of others.
func (t *Tally) Add(start time.Time, err error) {
	if start.Before(t.start) {
		return
	}
	end := time.Now()
	took, second := end.Sub(start), int(end.Sub(t.start)/time.Second)
	s := &t.shards[rand.IntN(tallyShards)]
	s.mu.Lock()
	defer s.mu.Unlock()
	i := bucketIndex(took)
	s.buckets = grow(s.buckets, i)
	s.buckets[i]++
	s.seconds = grow(s.seconds, second)
	s.seconds[second].Calls++
	s.max = max(s.max, took)
	if err == nil {
		return
	}
	s.seconds[second].Errors++
	s.last = err.Error()
	kind := Kind(err)
	if _, ok := s.kinds[kind]; !ok && len(s.kinds) >= kindLimit {
		kind = KindOther
	}
	if s.kinds == nil {
		s.kinds = map[string]int64{}
	}
	s.kinds[kind]++
}

// grow makes i an index of s.
func grow[T any](s []T, i int) []T {
	if i < len(s) {
		return s
	}
	return append(s, make([]T, i+1-len(s))...)
}

// Summary returns the counts until now. The program adds the library, the dials, the pool and the CPU time.
func (t *Tally) Summary() Summary {
	out := Summary{
		Schema: Schema, StartUnix: t.start.UnixNano(), Ran: max(time.Since(t.start), 0),
		ErrorKinds: map[string]int64{},
		PerSecond:  []Second{}, Histogram: Histogram{},
	}
	var buckets []int64
	for i := range t.shards {
		buckets = t.shards[i].addTo(&out, buckets)
	}
	for i, n := range buckets {
		if n > 0 {
			out.Histogram = append(out.Histogram, Bucket{int64(bucketValue(i)), n})
		}
	}
	return out
}

func (s *shard) addTo(out *Summary, buckets []int64) []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	buckets = grow(buckets, len(s.buckets)-1)
	for i, n := range s.buckets {
		buckets[i] += n
		out.Calls += n
	}
	out.PerSecond = slices.Clip(grow(out.PerSecond, len(s.seconds)-1))
	for i, n := range s.seconds {
		out.PerSecond[i].Calls += n.Calls
		out.PerSecond[i].Errors += n.Errors
		out.Errors += n.Errors
	}
	for kind, n := range s.kinds {
		out.ErrorKinds[kind] += n
	}
	out.Max = max(out.Max, s.max)
	if s.last != "" {
		out.LastError = s.last
	}
	return buckets
}
