package random

import (
	"cmp"
	"math"
	"slices"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/lab/scenario"
	"slowpath/internal/stats"
)

// Cost is what a fault cost the callers, by trials with and without it.
type Cost struct {
	Cause string `json:"cause"`
	// CostNs is the time by which an operation took longer, by the median of Hodges and Lehmann; it lies in Interval.
	CostNs   float64    `json:"cost_ns"`
	Interval [2]float64 `json:"interval"` // at 95 %, in nanoseconds; 0 and 0 with too few pairs
	// P is the probability of such trials if there is no cost: the smallest one of the tests of three values, times
	// three.
	P     float64 `json:"p"`
	Pairs int     `json:"pairs"` // of trials
	Hurts bool    `json:"hurts"` // P is at most alpha
	// Late is by how much the fault raises the share of operations that failed or were late by lateNs, and LateHigh the
	// most that it can be, at 95 %.
	Late     float64 `json:"late_share"`
	LateHigh float64 `json:"late_share_high"`
	// Long is by how many it raises the slices of a second in which an operation failed or was late by longNs.
	Long float64 `json:"long_per_second"`
	// Busy is the share of the workers' time that the fault takes.
	Busy float64 `json:"busy_share"`
	// Lost is the share of the time that callers lose by late operations while all faults are on which they do not lose
	// without this one. What two faults take together and not alone is shared equally. It is 0 where none is late.
	Lost float64 `json:"lost_share"`
	// Noticed: somebody notices so much, by one of the three.
	Noticed bool `json:"noticed"`
}

// What somebody notices of a fault is the same as keeps slowpath from calling a system healthy
// (docs/decisions/0003-automatic-slow-threshold.md).
const (
	lateNs      = int64(account.Noticed)
	noticedLate = facts.HealthyMaxShare // of calls that are late
	longNs      = facts.HealthyMaxNs
	noticedLong = 0.125          // one in 8 s, the time of a watch
	noticedBusy = facts.MinShare // of the callers' time
)

// Open tells whether the trials do not decide: they show a cost that nobody notices, or one that can be chance, or they
// are too few to exclude one that is noticed. Then it is right to name the fault, and not to name it.
func (c Cost) Open() bool { return c.Hurts != c.Noticed || !c.Hurts && c.LateHigh >= noticedLate }

// alpha is how often the test says of a fault that does nothing that it hurts, at most.
const alpha = 0.025

// Truth is a cause that cost the callers time.
type Truth struct {
	Cause    string     `json:"cause"`          // or healthy, where no fault did
	Also     []string   `json:"also,omitempty"` // causes by which the same fault can as well be called
	CostNs   float64    `json:"cost_ns"`
	Share    float64    `json:"share"` // Cost.Lost, or of what all faults together cost where no operation is late
	Interval [2]float64 `json:"interval"`
	// Culprit is the CLIENT SETNAME of who makes the calls that it consists of, where it does.
	Culprit string `json:"culprit,omitempty"`
}

// costs tests each fault by Wilcoxon's signed ranks of pairs of trials. workers are those of all callers.
func costs(faults []Fault, trials []Trial, workers int) []Cost {
	second := meanRank
	if (Drawn{Faults: faults}).rare() { // one stall in a trial hardly shows in the ranks
		second = meanLost
	}
	out := []Cost{}
	for i, f := range faults {
		log := stats.ComparePairs(differences(trials, setsOf(faults), i, meanLog))
		other := stats.ComparePairs(differences(trials, setsOf(faults), i, second))
		late := stats.ComparePairs(differences(trials, setsOf(faults), i, lateShare))
		p := min(1, 3*min(log.P, other.P, late.P))
		cost := stats.ComparePairs(differences(trials, setsOf(faults), i, meanNs))
		c := Cost{
			Cause: f.Cause, CostNs: cost.Shift, Interval: [2]float64{finite(cost.Low), finite(cost.High)},
			P: p, Pairs: cost.Pairs, Hurts: p <= alpha,
			Late: mean(differences(trials, setsOf(faults), i, lateShare)), LateHigh: finite(late.High),
			Long: mean(differences(trials, setsOf(faults), i, longPerSecond)),
			Lost: lost(faults, trials, i),
			Busy: busy(cost.Shift, trials, workers),
		}
		c.Noticed = c.Late >= noticedLate || c.Long >= noticedLong || c.Busy >= noticedBusy && !f.kind().Distance
		out = append(out, c)
	}
	return out
}

// lost is the Lost of a cost, from 0 to 1.
func lost(faults []Fault, trials []Trial, fault int) float64 {
	var all []float64
	for _, t := range trials {
		if t.mask == 1<<len(faults)-1 {
			all = append(all, lostPerSecond(t))
		}
	}
	share := mean(differences(trials, setsOf(faults), fault, lostPerSecond)) / max(mean(all), 1)
	return min(max(share, 0), 1)
}

// busy is the share of the workers' time if an operation takes so many nanoseconds more.
func busy(ns float64, trials []Trial, workers int) float64 {
	return ns / 1e9 * perSecond(trials) / float64(max(workers, 1))
}

// perSecond is the number of operations per second in all trials.
func perSecond(trials []Trial) float64 {
	operations, seconds := int64(0), 0.0
	for _, t := range trials {
		operations, seconds = operations+t.Operations, seconds+t.countedSeconds()
	}
	return float64(operations) / max(seconds, 1e-9)
}

// truth are the faults that hurt so that it is noticed, the most expensive first.
func truth(faults []Fault, costs []Cost) []Truth {
	var out []Truth
	sum, late := 0.0, false
	for i, c := range costs {
		if c.Hurts && c.Noticed {
			// what hurts costs something, even where the noise hides how much
			cost := max(c.CostNs, 1)
			out = append(out, Truth{
				Cause: c.Cause, Also: faults[i].kind().Also, CostNs: cost, Share: c.Lost, Interval: c.Interval,
				Culprit: culprit(faults[i].kind()),
			})
			sum, late = sum+cost, late || c.Lost > 0
		}
	}
	if len(out) == 0 {
		return []Truth{{Cause: scenario.HealthyCause}}
	}
	for i := range out {
		if !late {
			out[i].Share = out[i].CostNs / sum
		}
	}
	slices.SortStableFunc(out, func(a, b Truth) int { return cmp.Compare(b.CostNs, a.CostNs) })
	return out
}

// culprit is who makes the calls of a fault: a load of its own, or the callers themselves.
func culprit(f scenario.Fault) string {
	if f.Caller != nil {
		return callersName
	}
	return f.Culprit
}

// is tells whether a cause names this truth.
func (t Truth) is(cause string) bool { return t.Cause == cause || slices.Contains(t.Also, cause) }

// finite replaces an open end by 0: JSON has no infinity. Such an interval comes with too few pairs only.
func finite(v float64) float64 {
	if math.IsInf(v, 0) {
		return 0
	}
	return v
}
