// Package meter counts what an application does, such as jobs and page views, and reports it once per second as lines
// of JSON (docs/apps.md).
//
// The applications in Go, which are modules of their own, contain it too, so that both sides agree. It therefore
// imports only the standard library.
package meter

import (
	"cmp"
	"encoding/json"
	"io"
	"math/bits"
	"slices"
	"sync"
	"time"
)

// Schema is the version of the lines.
const Schema = "slowpath.app/v1"

// Line is one kind of operation in one second. A failed operation is one of those that were done.
type Line struct {
	Schema    string        `json:"schema"`
	Operation string        `json:"operation"`
	Unix      int64         `json:"unix_second"` // in which the operations ended
	Done      int64         `json:"done"`
	Errors    int64         `json:"errors"`
	Sum       time.Duration `json:"sum_ns"`    // of the operations, as their caller saw them
	Max       time.Duration `json:"max_ns"`    // of the longest
	Histogram []Bucket      `json:"histogram"` // in the order of durations; the counts add up to Done
	LastError string        `json:"last_error,omitempty"`
}

// Bucket is a pair: a duration in nanoseconds, as Floor returns it, and the number of operations that took it.
type Bucket [2]int64

// keptBits is the resolution of durations: the eight leading binary digits of a duration in nanoseconds are kept, the
// others are 0. A value is thus at most 1/128 below the measured one, and all languages compute the same.
const keptBits = 8

// Floor returns the bucket of a duration.
func Floor(d time.Duration) int64 {
	v := uint64(max(d, 0))
	shift := max(bits.Len64(v)-keptBits, 0)
	return int64(v >> shift << shift)
}

// ErrorLimit bounds the text of an error, in bytes.
const ErrorLimit = 200

// Meter counts operations. Its methods are safe for concurrent use.
type Meter struct {
	mu   sync.Mutex
	out  *json.Encoder
	open map[key]*second
}

type key struct {
	unix      int64
	operation string
}

type second struct {
	Line
	buckets map[int64]int64
}

// New returns a meter that writes its lines to out.
func New(out io.Writer) *Meter { return &Meter{out: json.NewEncoder(out), open: map[key]*second{}} }

// Measure does an operation and counts it.
func (m *Meter) Measure(operation string, do func() error) error {
	start := time.Now()
	err := do()
	m.Add(operation, time.Since(start), err)
	return err
}

// Add counts an operation that ends now.
func (m *Meter) Add(operation string, took time.Duration, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := key{time.Now().Unix(), operation}
	s := m.open[k]
	if s == nil {
		s = &second{buckets: map[int64]int64{}}
		s.Line = Line{Schema: Schema, Operation: operation, Unix: k.unix}
		m.open[k] = s
	}
	s.Done++
	s.Sum += took
	s.Max = max(s.Max, took)
	s.buckets[Floor(took)]++
	if err != nil {
		s.Errors++
		text := err.Error()
		s.LastError = text[:min(len(text), ErrorLimit)]
	}
}

// Report writes the lines of each second that is over, until stop is closed; then it writes the rest.
func (m *Meter) Report(stop <-chan struct{}) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return m.write(time.Now().Unix() + 1)
		case now := <-tick.C:
			if err := m.write(now.Unix()); err != nil {
				return err
			}
		}
	}
}

// write writes the lines of the seconds before a time.
func (m *Meter) write(before int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var lines []Line
	for k, s := range m.open {
		if k.unix >= before {
			continue
		}
		for value, n := range s.buckets {
			s.Histogram = append(s.Histogram, Bucket{value, n})
		}
		slices.SortFunc(s.Histogram, func(a, b Bucket) int { return cmp.Compare(a[0], b[0]) })
		lines = append(lines, s.Line)
		delete(m.open, k)
	}
	slices.SortFunc(lines, func(a, b Line) int {
		return cmp.Or(cmp.Compare(a.Unix, b.Unix), cmp.Compare(a.Operation, b.Operation))
	})
	for _, line := range lines {
		if err := m.out.Encode(line); err != nil {
			return err
		}
	}
	return nil
}
