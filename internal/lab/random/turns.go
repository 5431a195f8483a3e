package random

import (
	"math"
	"math/rand/v2"
	"time"

	"slowpath/internal/lab/clients"
)

// Faults are switched in turns of a second: callers notice most faults several times in it, and eight pairs of turns
// take 16 s. The first part of a turn is not counted: what the turn before has begun goes on in it.
const (
	turnLength = time.Second
	settling   = 150 * time.Millisecond
	pairs      = 8
	slice      = 50 * time.Millisecond
)

// Turn is a time with the same faults, and what the callers measured in it.
type Turn struct {
	Faults     []int `json:"faults"` // indexes of the faults that were on
	StartNs    int64 `json:"start_ns"`
	EndNs      int64 `json:"end_ns"`
	Operations int64 `json:"operations"` // that were due
	Failed     int64 `json:"failed"`     // of these, at the first attempt or not made in time
	Ns         int64 `json:"ns"`         // from when they were due until the callers had results
	mask       int   // the faults as bits
}

// plan is the order of the turns: blocks that have each set of faults once, in random order. One block has a pair of
// turns for one fault, and two for each of two faults: with and without it, both with and without the other. Without a
// fault the pair differs in nothing.
func plan(seed uint64, faults int) (blocks [][]int) {
	r := rand.New(rand.NewPCG(seed, 0x7475726e)) // any constant, but another one than that of Draw
	n, sets := pairs, 2
	if faults == 2 {
		n, sets = pairs/2, 4
	}
	for range n {
		blocks = append(blocks, r.Perm(sets))
	}
	return blocks
}

// maskOf are the faults of a set. Without faults there is nothing to switch.
func maskOf(set, faults int) int {
	if faults == 0 {
		return 0
	}
	return set
}

// newTurn is a turn that begins. set tells the turns of a block apart.
func newTurn(set, faults int, start time.Time) Turn {
	t := Turn{Faults: []int{}, StartNs: start.UnixNano(), mask: set}
	for i := range faults {
		if set>>i&1 == 1 {
			t.Faults = append(t.Faults, i)
		}
	}
	return t
}

// count adds what a caller measured. Slices at the edges of a turn belong to none.
func (t *Turn) count(measured clients.Summary) {
	for i, s := range measured.Slices {
		from := measured.StartUnix + int64(i)*int64(slice)
		if from >= t.StartNs+int64(settling) && from+int64(slice) <= t.EndNs {
			t.Operations += s.Operations
			t.Failed += s.Failed
			t.Ns += s.Ns
		}
	}
}

// perOperation is the mean time of an operation; NaN without operations.
func (t *Turn) perOperation() float64 {
	if t.Operations == 0 {
		return math.NaN()
	}
	return float64(t.Ns) / float64(t.Operations)
}

// differences is by how much the callers' operations took longer with a fault, for each pair of turns of the same block
// that differ in this fault alone.
func differences(turns []Turn, faults, fault int) (out []float64) {
	sets := 2
	if faults == 2 {
		sets = 4
	}
	for start := 0; start+sets <= len(turns); start += sets {
		took := make([]float64, sets)
		for _, t := range turns[start : start+sets] {
			took[t.mask] = t.perOperation()
		}
		for set := range sets {
			if set>>fault&1 == 1 {
				out = append(out, took[set]-took[set&^(1<<fault)])
			}
		}
	}
	return out
}

// twoDigits rounds to two places, so that a scenario can be read.
func twoDigits(v float64) float64 { return math.Round(v*100) / 100 }

// expBetween draws a number whose logarithm is uniform.
func expBetween(r *rand.Rand, low, high float64) float64 {
	return low * math.Pow(high/low, r.Float64())
}
