package live

import (
	"math/bits"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// stepBits is into how many steps a power of two is divided: 32, as in the tap's histograms, which is 3 %.
const stepBits = 5

// Latencies is how many calls took how long, in steps of 3 %. The zero value has no calls. It takes eight bytes for
// each step that has calls; a histogram of the library takes some 20 kB.
type Latencies struct {
	steps []step // ordered
	calls int64
	maxNs int64
}

type step struct {
	at uint16
	n  uint32
}

// Add counts calls that took about this long, in nanoseconds.
func (l *Latencies) Add(ns, calls int64) {
	if calls > 0 {
		l.put(stepOf(max(ns, 0)), calls)
		l.maxNs = max(l.maxNs, ns)
	}
}

// Remove takes calls away again, as many of them as there are: those of a time, else of the next longer ones, which
// another end of their connections measured. It gives how many were not there.
func (l *Latencies) Remove(ns, calls int64) (missing int64) {
	at := stepOf(max(ns, 0))
	for calls > 0 && len(l.steps) > 0 {
		i, _ := slices.BinarySearchFunc(l.steps, at, func(s step, at uint16) int { return int(s.at) - int(at) })
		i = min(i, len(l.steps)-1)
		some := min(calls, int64(l.steps[i].n))
		l.steps[i].n -= uint32(some)
		l.calls, calls = l.calls-some, calls-some
		if l.steps[i].n == 0 {
			l.steps = slices.Delete(l.steps, i, i+1)
		}
	}
	return calls
}

func (l *Latencies) put(at uint16, calls int64) {
	calls = min(calls, 1<<31)
	i, found := slices.BinarySearchFunc(l.steps, at, func(s step, at uint16) int { return int(s.at) - int(at) })
	if !found {
		l.steps = slices.Insert(l.steps, i, step{at: at})
	}
	l.steps[i].n = uint32(min(int64(l.steps[i].n)+calls, 1<<32-1))
	l.calls += calls
}

// Merge adds the calls of other latencies.
func (l *Latencies) Merge(o Latencies) {
	for _, s := range o.steps {
		l.put(s.at, int64(s.n))
	}
	l.maxNs = max(l.maxNs, o.maxNs)
}

// slowest learns from calls that were recorded one by one, and may be among these, how long the slowest took exactly.
// Of a step the lower end counts: no call is said to have taken longer than it did.
func (l *Latencies) slowest(recordedNs []int64) {
	width := l.maxNs >> stepBits
	most := l.maxNs + width
	l.maxNs -= width
	for _, ns := range recordedNs {
		if ns <= most {
			l.maxNs = max(l.maxNs, ns)
		}
	}
}

// Calls is how many there are.
func (l Latencies) Calls() int64 { return l.calls }

// MaxNs is the time of the slowest call in nanoseconds.
func (l Latencies) MaxNs() int64 { return l.maxNs }

// MinNs is the time of the fastest call in nanoseconds, at most 3 % too low; 0 without calls.
func (l Latencies) MinNs() int64 {
	if len(l.steps) == 0 {
		return 0
	}
	return l.steps[0].fromNs()
}

// Quantile is the time within which a part of the calls ended, in nanoseconds: 0.99 for p99. It is 0 without calls.
func (l Latencies) Quantile(q float64) int64 {
	wanted, seen := int64(q*float64(l.calls)+0.5), int64(0)
	for _, s := range l.steps {
		if seen += int64(s.n); seen >= max(wanted, 1) {
			return min(s.middleNs(), l.maxNs)
		}
	}
	return l.maxNs
}

// From is how many calls took so long, in nanoseconds, or longer. A step that this divides counts where its middle
// lies.
func (l Latencies) From(ns int64) (calls int64) {
	for _, s := range l.steps {
		if s.middleNs() >= ns {
			calls += int64(s.n)
		}
	}
	return calls
}

// Each visits the steps that have calls, the fastest first: from and up to which time in nanoseconds, and how many.
func (l Latencies) Each(visit func(fromNs, toNs, calls int64)) {
	for _, s := range l.steps {
		visit(s.fromNs(), stepFrom(s.at+1), int64(s.n))
	}
}

// HDR is the same as a histogram of the library, of two digits, up to an hour.
func (l Latencies) HDR() *hdrhistogram.Histogram {
	const hour = 3_600_000_000_000
	h := hdrhistogram.New(1, hour, 2)
	for _, s := range l.steps {
		_ = h.RecordValues(min(s.middleNs(), hour), int64(s.n)) // cannot be out of range
	}
	return h
}

// stepOf is the place of a time: times below 64 ns have a step each.
func stepOf(ns int64) uint16 {
	power := bits.Len64(uint64(ns)) - 1 - stepBits
	if power <= 0 {
		return uint16(ns)
	}
	return uint16(power<<stepBits + int(ns>>power))
}

// stepFrom is the least time of a step.
func stepFrom(at uint16) int64 {
	power := int(at)>>stepBits - 1
	if power <= 0 {
		return int64(at)
	}
	return int64(1<<stepBits+int(at)&(1<<stepBits-1)) << power
}

func (s step) fromNs() int64   { return stepFrom(s.at) }
func (s step) middleNs() int64 { return (s.fromNs() + stepFrom(s.at+1)) / 2 }
