package recording

import (
	"hash/fnv"
	"math"
	"math/bits"
	"strings"
	"sync"
	"time"
)

// row is a row that is to be written, or one that was. A row of meta has no table.
type row struct {
	into  *table
	id    int64 // rowid; 0 as long as it was not written
	args  []any // as the columns of its table
	class *class
	bytes int64
	// a segment that was read again, and whose call was deleted
	orphan bool
}

// class is rows of one kind: what is thinned, and how much, is decided for each class alone.
type class struct {
	name    string
	into    *table
	rank    int64 // a class of rank 8 takes eight times the space of one of rank 1 before it is thinned
	sampled bool  // one part of its rows stands for the rest: they may be left out before they are written

	rows, bytes int64 // in the file
	offered     int64 // rows that sources wrote
	out         int64 // of these, how many were left out or deleted again
	interval    int64 // bytes that were offered since the last flush
	level       int   // one row in 2^level is kept of those that are offered
}

// Names of classes whose rows matter most.
const (
	slowCalls = "slow calls"
	fastCalls = "calls that are not slow"
	segments  = "segments of calls"
)

// autoSlowNs is from when on a call counts as slow, in nanoseconds, where nobody has said it.
const autoSlowNs = int64(5 * time.Millisecond)

// classes are those of one recording.
type classes struct {
	mu     sync.Mutex
	all    map[string]*class
	slowNs int64
	// perInterval is how many bytes of a class are written between two flushes; more are sampled.
	perInterval int64
}

func newClasses(perInterval int64) *classes {
	return &classes{all: map[string]*class{}, slowNs: autoSlowNs, perInterval: perInterval}
}

// setSlow takes the threshold from meta.
func (cs *classes) setSlow(text string) {
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		cs.mu.Lock()
		cs.slowNs = int64(d)
		cs.mu.Unlock()
	}
}

// share is how many bytes a class has, weighed by its rank: segments count with their calls.
func (cs *classes) share(c *class) float64 {
	bytes := float64(c.bytes)
	if s := cs.all[segments]; c.into == callTable && s != nil {
		var calls int64
		for _, name := range []string{slowCalls, fastCalls} {
			if of := cs.all[name]; of != nil {
				calls += of.rows
			}
		}
		bytes += float64(s.bytes) * float64(c.rows) / float64(max(calls, 1))
	}
	return bytes / float64(c.rank)
}

// find finds the class of a row.
func (cs *classes) find(t *table, args []any) *class {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return cs.of(t, args)
}

func (cs *classes) of(t *table, args []any) *class {
	name, rank, sampled := t.name+"s", int64(1), false
	switch t {
	case callTable:
		name, rank, sampled = fastCalls, 2, true
		if durationOf(args) >= cs.slowNs {
			name, rank, sampled = slowCalls, 8, false
		}
	case segmentTable:
		name, rank = segments, 8
	case eventTable:
		name, sampled = "events "+text(args[4])+" of "+text(args[2]), true
	case histogramTable:
		rank = 2
	case snapshotTable, profileTable:
		rank = 4
	}
	c := cs.all[name]
	if c == nil {
		c = &class{name: name, into: t, rank: rank, sampled: sampled}
		cs.all[name] = c
	}
	return c
}

// admit makes a row, and says whether it is to be written. Of classes that come faster than the file can hold them one
// row in two, four, … is; of those that name a connection the rows of one connection in two, four, ….
func (cs *classes) admit(t *table, args []any) (row, bool) {
	r := row{into: t, args: args, bytes: sizeOf(args)}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	r.class = cs.of(t, args)
	c := r.class
	c.offered++
	c.interval += r.bytes
	if !c.sampled {
		return r, true
	}
	level := max(c.level, bits.Len64(uint64(c.interval/cs.perInterval)))
	if level > 0 && keyOf(t, args, uint64(c.offered)) >= threshold(level) {
		c.out++
		return r, false
	}
	return r, true
}

// nextInterval sets how much of each class is kept from now on by how much came in the interval that has ended.
func (cs *classes) nextInterval() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, c := range cs.all {
		c.level = bits.Len64(uint64(c.interval / cs.perInterval))
		c.interval = 0
	}
}

// wrote counts rows that were written to the file, or with n = -1 those that were deleted from it.
func (cs *classes) wrote(rows []row, n int64) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, r := range rows {
		if r.class == nil {
			continue
		}
		r.class.rows += n
		r.class.bytes += n * r.bytes
		if n < 0 {
			r.class.out++
		}
	}
}

// leftOut counts rows that will not be written.
func (cs *classes) leftOut(rows []row) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, r := range rows {
		if r.class != nil {
			r.class.out++
		}
	}
}

// sizeOf is about how many bytes a row takes in the file.
func sizeOf(args []any) int64 {
	n := int64(8) // rowid and lengths
	for _, v := range args {
		switch v := v.(type) {
		case string:
			n += int64(len(v)) + 1
		case []byte:
			n += int64(len(v)) + 2
		case int64, float64:
			n += 9
		default:
			n += 3
		}
	}
	return n
}

// durationOf is the time of a call, in nanoseconds, from its columns.
func durationOf(call []any) int64 { return number(call[10]) - number(call[8]) }

// keyOf is the same number for all rows of a connection in the events that begin and end it, so that what is kept of a
// connection is whole. Other rows have numbers that are spread evenly; each second one is in the lower half.
func keyOf(t *table, args []any, nth uint64) uint64 {
	if t == eventTable {
		switch text(args[4]) {
		case KindOpen, KindHandshake, KindClose:
			_, rest, _ := strings.Cut(text(args[5]), `"client":"`)
			if client, _, ok := strings.Cut(rest, `"`); ok && client != "" {
				h := fnv.New64a()
				h.Write([]byte(client))
				return spread(h.Sum64())
			}
		}
	}
	return bits.Reverse64(nth)
}

// spread makes all bits of a hash depend on all others (the finalizer of SplitMix64).
func spread(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// threshold is the key below which one in 2^level is.
func threshold(level int) uint64 { return math.MaxUint64 >> min(level, 63) }

func text(v any) string {
	s, _ := v.(string)
	return s
}

func number(v any) int64 {
	n, _ := v.(int64)
	return n
}
