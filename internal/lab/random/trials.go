package random

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/clients/programs/protocol"
)

// A run has 24 trials of 750 ms, 18 s together: callers notice most faults several times in each. The first part of a
// trial is not counted: what the trial before has begun goes on in it. Faults that come seldom have longer trials, and
// fewer of them; where what they have begun lasts, more is not counted. Without a fault there is nothing to compare:
// a few trials show what is usual.
const (
	trialLength = 750 * time.Millisecond
	settling    = 150 * time.Millisecond
	trialsOfRun = 24
	fewTrials   = 20              // long ones
	plainTrials = 6               // without a fault
	longTrial   = 2 * time.Second // and longer
	slice       = 50 * time.Millisecond
)

// trialLength is how long the trials of a drawn scenario are, and how much of that is not counted.
func (s Drawn) trialLength() (length, settles time.Duration) {
	length, settles = trialLength, settling
	for _, f := range s.Faults {
		length, settles = max(length, f.kind().Trial), max(settles, settling+f.kind().Lasts)
	}
	return length + settles - settling, settles
}

// rare tells whether there are few long trials, of which each has few stalls.
func (s Drawn) rare() bool {
	length, _ := s.trialLength()
	return length >= longTrial
}

// Trial is a time with the same faults, and what the callers measured in it.
type Trial struct {
	Faults     []int `json:"faults"` // indexes of the faults that were on
	StartNs    int64 `json:"start_ns"`
	EndNs      int64 `json:"end_ns"`
	Operations int64 `json:"operations"` // that were due
	Failed     int64 `json:"failed"`     // of these, at the first attempt or not made in time
	Ns         int64 `json:"ns"`         // from when they were due until the callers had results
	// LogNs is the mean of the logarithms of the slices' times of an operation in ns. Rank is the mean of their ranks
	// among all slices of their caller, from 0 to 1. Both are means over the callers, so that one with few operations
	// counts as much as one with many. Stalls that others on this host cause are few and long: they hide
	// less in LogNs than in Ns, and least in Rank, which hardly shows a fault that is short.
	LogNs float64 `json:"log_ns"`
	Rank  float64 `json:"rank"`
	// LateSlices is the number of slices in which an operation failed, or took lateNs more than is usual of its caller.
	LateSlices int `json:"late_slices"`
	// LateOperations is how many of their operations were late, at least; 0 in runs before it was counted.
	LateOperations int64 `json:"late_operations,omitempty"`
	// LongSlices is the number of those in which it failed, or took longNs more.
	LongSlices int `json:"long_slices"`
	// LostNs is the time of the late slices' operations beyond what is usual of their caller, in nanoseconds; also of
	// the other callers, of which nothing else counts.
	LostNs int64 `json:"lost_ns"`
	// SettlingNs is the first part, which is not counted; 0: 150 ms.
	SettlingNs int64 `json:"settling_ns,omitempty"`
	mask       int   // the faults as bits
	// of each caller
	logs, ranks []float64
}

// setsOf are the sets of faults that are tried, as bits. A pair of them differs in one fault alone. One fault is tried
// with and without, two both with and without the other. What can hurt only with the other is tried with it only.
func setsOf(faults []Fault) []int {
	switch {
	case len(faults) == 0:
		return []int{0}
	case len(faults) == 1:
		return []int{0, 1}
	case faults[1].kind().Needs.With != "":
		return []int{0, 1, 3}
	}
	return []int{0, 1, 2, 3}
}

// plan is the order of the trials: blocks that have each set once, in random order.
func plan(seed uint64, faults []Fault) (blocks [][]int) {
	r := rand.New(rand.NewPCG(seed, 0x7472696c)) // any constant, but another one than that of Draw
	sets, trials := setsOf(faults), trialsOfRun
	switch {
	case len(faults) == 0:
		trials = plainTrials
	case len(sets) != 3 && (Drawn{Faults: faults}).rare():
		trials = fewTrials
	}
	for range trials / len(sets) {
		block := slices.Clone(sets)
		r.Shuffle(len(block), func(i, j int) { block[i], block[j] = block[j], block[i] })
		blocks = append(blocks, block)
	}
	return blocks
}

// newTrial is a trial that begins. set are the faults that are on, as bits.
func newTrial(set, faults int, start time.Time) Trial {
	t := Trial{Faults: []int{}, StartNs: start.UnixNano(), mask: set}
	for i := range faults {
		if set>>i&1 == 1 {
			t.Faults = append(t.Faults, i)
		}
	}
	return t
}

// setMask sets the mask of a trial that was stored. Where there are faults it is their set.
func (t *Trial) setMask() {
	t.mask = 0
	for _, i := range t.Faults {
		t.mask |= 1 << i
	}
}

// counted is a slice of a caller that lies in a trial.
type counted struct {
	protocol.Slice
	trial *Trial
	took  float64 // time of an operation in ns
}

// countedSlices are those of a caller, the quickest first, and the time of an operation that is usual of it: a quarter
// of the slices are quick also where half of the trials are slow. Slices at the edges of a trial belong to none.
func countedSlices(trials []Trial, measured clients.Summary) (all []counted, usual float64) {
	for i := range trials {
		for k, s := range measured.Slices {
			from, settled := measured.StartUnix+int64(k)*int64(slice), trials[i].StartNs+int64(trials[i].settling())
			if from < settled || from+int64(slice) > trials[i].EndNs || s.Operations == 0 {
				continue
			}
			all = append(all, counted{s, &trials[i], float64(max(s.Ns, 1)) / float64(s.Operations)})
		}
	}
	slices.SortFunc(all, func(a, b counted) int { return cmp.Compare(a.took, b.took) })
	if len(all) > 0 {
		usual = all[len(all)/4].took
	}
	return all, usual
}

// late tells whether an operation failed, or took so many nanoseconds more than usual.
func (c counted) late(usual float64, by int64) bool {
	return c.Failed > 0 || float64(c.MaxNs) >= usual+float64(by)
}

// lateOperations is how many operations of a slice were late, at least: those that failed, or as many as take its time
// beyond what is usual if each takes as long as the longest.
func (c counted) lateOperations(usual float64) int64 {
	if !c.late(usual, lateNs) {
		return 0
	}
	longest := float64(c.lost(usual)) / max(float64(c.MaxNs)-usual, 1)
	return min(max(1, c.Failed, int64(longest)), c.Operations)
}

// lost is the time of a late slice's operations beyond what is usual.
func (c counted) lost(usual float64) int64 {
	if !c.late(usual, lateNs) {
		return 0
	}
	return max(0, c.Ns-int64(usual*float64(c.Operations)))
}

// countLost adds the time that a caller lost to all trials, and nothing else.
func countLost(trials []Trial, measured clients.Summary) {
	all, usual := countedSlices(trials, measured)
	for _, c := range all {
		c.trial.LostNs += c.lost(usual)
	}
}

// count adds what a caller measured to all trials, and to the watch. What is usual is so in the trials.
func count(trials []Trial, watch *Trial, measured clients.Summary) {
	all, usual := countedSlices(trials, measured)
	during, _ := countedSlices([]Trial{*watch}, measured)
	for _, c := range during {
		watch.add(c, usual)
	}
	logs, ranks := map[*Trial][]float64{}, map[*Trial][]float64{}
	for rank, c := range all {
		c.trial.add(c, usual)
		logs[c.trial] = append(logs[c.trial], math.Log(c.took))
		ranks[c.trial] = append(ranks[c.trial], (float64(rank)+0.5)/float64(len(all)))
	}
	for t := range logs {
		t.logs, t.ranks = append(t.logs, mean(logs[t])), append(t.ranks, mean(ranks[t]))
		t.LogNs, t.Rank = mean(t.logs), mean(t.ranks)
	}
}

// add adds a slice.
func (t *Trial) add(c counted, usual float64) {
	t.Operations += c.Operations
	t.Failed += c.Failed
	t.Ns += c.Ns
	t.LostNs += c.lost(usual)
	t.LateOperations += c.lateOperations(usual)
	if c.late(usual, lateNs) {
		t.LateSlices++
	}
	if c.late(usual, longNs) {
		t.LongSlices++
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

// measured gives a value of trials with operations, and NaN of others.
func measured(value func(Trial) float64) func(Trial) float64 {
	return func(t Trial) float64 {
		if t.Operations == 0 {
			return math.NaN()
		}
		return value(t)
	}
}

var (
	meanNs   = measured(func(t Trial) float64 { return float64(t.Ns) / float64(t.Operations) })
	meanLog  = measured(func(t Trial) float64 { return t.LogNs })
	meanRank = measured(func(t Trial) float64 { return t.Rank })
	meanLost = measured(lostPerSecond)
)

// countedSeconds is how long the part of a trial is that counts.
func (t Trial) countedSeconds() float64 {
	return max(time.Duration(t.EndNs-t.StartNs)-t.settling(), 0).Seconds()
}

func (t Trial) settling() time.Duration { return cmp.Or(time.Duration(t.SettlingNs), settling) }

// lateShare is the share of the operations that were late, at least. Of a trial without operations none was.
func lateShare(t Trial) float64 {
	return float64(cmp.Or(t.LateOperations, int64(t.LateSlices))) / float64(max(t.Operations, 1))
}

func longPerSecond(t Trial) float64 { return float64(t.LongSlices) / max(t.countedSeconds(), 1e-9) }

// lostPerSecond is the time in nanoseconds that callers lose in a second by late operations.
func lostPerSecond(t Trial) float64 { return float64(t.LostNs) / max(t.countedSeconds(), 1e-9) }

// differences is by how much a value is higher with a fault, for each pair of trials of the same block that differ in
// this fault alone.
func differences(trials []Trial, sets []int, fault int, value func(Trial) float64) (out []float64) {
	for start := 0; start+len(sets) <= len(trials); start += len(sets) {
		took := map[int]float64{}
		for _, t := range trials[start : start+len(sets)] {
			took[t.mask] = value(t)
		}
		for _, set := range sets {
			without, ok := took[set&^(1<<fault)]
			if ok && set>>fault&1 == 1 {
				out = append(out, took[set]-without)
			}
		}
	}
	return out
}

// twoDigits rounds to two places, so that a drawn scenario can be read.
func twoDigits(v float64) float64 { return math.Round(v*100) / 100 }

// expBetween draws a number whose logarithm is uniform.
func expBetween(r *rand.Rand, low, high float64) float64 {
	return low * math.Pow(high/low, r.Float64())
}
