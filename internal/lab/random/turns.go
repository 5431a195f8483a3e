package random

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
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
	// LogNs is the mean of the logarithms of the slices' times of an operation in ns. Rank is the mean of their ranks
	// among all slices of their caller, from 0 to 1. Stalls that others on this host cause are few and long: they hide
	// less in LogNs than in Ns, and least in Rank, which in turn hardly shows a fault that is short.
	LogNs float64 `json:"log_ns"`
	Rank  float64 `json:"rank"`
	mask  int     // the faults as bits
	took  []float64
	ranks []float64
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

// count adds what a caller measured to all turns. Slices at the edges of a turn belong to none.
func count(turns []Turn, measured clients.Summary) {
	type counted struct {
		turn *Turn
		took float64 // time of an operation in ns
	}
	var all []counted
	for i := range turns {
		for k, s := range measured.Slices {
			from := measured.StartUnix + int64(k)*int64(slice)
			if from < turns[i].StartNs+int64(settling) || from+int64(slice) > turns[i].EndNs || s.Operations == 0 {
				continue
			}
			turns[i].Operations += s.Operations
			turns[i].Failed += s.Failed
			turns[i].Ns += s.Ns
			all = append(all, counted{&turns[i], float64(max(s.Ns, 1)) / float64(s.Operations)})
		}
	}
	slices.SortFunc(all, func(a, b counted) int { return cmp.Compare(a.took, b.took) })
	for rank, c := range all {
		c.turn.took = append(c.turn.took, math.Log(c.took))
		c.turn.ranks = append(c.turn.ranks, (float64(rank)+0.5)/float64(len(all)))
	}
	for i := range turns {
		turns[i].LogNs, turns[i].Rank = mean(turns[i].took), mean(turns[i].ranks)
	}
}

// mean is 0 of nothing.
func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(1, len(values)))
}

// measured gives a value of turns with operations, and NaN of others.
func measured(value func(Turn) float64) func(Turn) float64 {
	return func(t Turn) float64 {
		if t.Operations == 0 {
			return math.NaN()
		}
		return value(t)
	}
}

var (
	meanNs   = measured(func(t Turn) float64 { return float64(t.Ns) / float64(t.Operations) })
	meanLog  = measured(func(t Turn) float64 { return t.LogNs })
	meanRank = measured(func(t Turn) float64 { return t.Rank })
)

// differences is by how much a value is higher with a fault, for each pair of turns of the same block that differ in
// this fault alone.
func differences(turns []Turn, faults, fault int, value func(Turn) float64) (out []float64) {
	sets := 2
	if faults == 2 {
		sets = 4
	}
	for start := 0; start+sets <= len(turns); start += sets {
		took := make([]float64, sets)
		for _, t := range turns[start : start+sets] {
			took[t.mask] = value(t)
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
