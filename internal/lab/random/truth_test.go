package random

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/clients/programs/protocol"
)

// trialsOf are trials as play makes them. took is the mean time of an operation in ms, by the faults that are on.
func trialsOf(seed uint64, faults int, took func(set int) float64) (trials []Trial) {
	for _, block := range plan(seed, make([]Fault, faults)) {
		for _, set := range block {
			ns := took(set) * 1e6
			trials = append(trials, Trial{
				Operations: 100, Ns: int64(100 * ns), LogNs: math.Log(ns), Rank: ns,
				LateSlices: int(took(set)), StartNs: 0, EndNs: int64(trialLength), mask: set,
				LostNs: int64(100 * (ns - 0.5e6)),
			})
		}
	}
	return trials
}

// TestTruthOfTwoFaults: the costs of two faults are those that were put in, also where both together cost more, and a
// fault that costs nothing is not part of the truth.
func TestTruthOfTwoFaults(t *testing.T) {
	faults := []Fault{{Cause: "slow-command"}, {Cause: "rtt-floor"}}
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		r := rand.New(rand.NewPCG(seed, 9))
		a, b := rapid.Float64Range(1, 20).Draw(t, "a"), rapid.Float64Range(1, 20).Draw(t, "b")
		both := rapid.Float64Range(0, 5).Draw(t, "both")
		trials := trialsOf(seed, 2, func(set int) float64 {
			took := 1 + 0.001*r.Float64()
			took += a*float64(set&1) + b*float64(set>>1)
			if set == 3 {
				took += both
			}
			return took
		})
		got := truth(faults, costs(faults, trials, 1))
		// of 1 ms that an operation takes without a fault, half is lost
		rest := 1 - 0.5/(0.5+a+b+both)
		if len(got) != 2 || math.Abs(got[0].Share+got[1].Share-rest) > 1e-3 || got[0].CostNs < got[1].CostNs {
			t.Fatalf("truth %+v, want shares of %g together", got, rest)
		}
		for _, one := range got {
			want := a
			if one.Cause == "rtt-floor" {
				want = b
			}
			// what both cost together is shared equally
			if math.Abs(one.CostNs/1e6-want-both/2) > 0.01 || one.Interval[0] <= 0 {
				t.Errorf("%+v, want %g ms and half of %g", one, want, both)
			}
		}
		trials = trialsOf(seed, 2, func(set int) float64 { return 1 + a*float64(set&1) })
		alone := truth(faults, costs(faults, trials, 1))
		if len(alone) != 1 || alone[0].Cause != "slow-command" || math.Abs(alone[0].Share-a/(0.5+a)) > 1e-3 {
			t.Errorf("only the first hurts: %+v", alone)
		}
	})
}

// TestTestIsSeldomWrong: trials that differ in nothing are seldom said to differ.
func TestTestIsSeldomWrong(t *testing.T) {
	runs := 2000
	if testing.Short() {
		runs = 300
	}
	wrong := 0
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 5))
		trials := trialsOf(seed, 1, func(int) float64 { return math.Exp(r.NormFloat64()) })
		if costs([]Fault{{Cause: "x"}}, trials, 1)[0].Hurts {
			wrong++
		}
	}
	t.Logf("%d of %d", wrong, runs)
	if wrong > runs*3/100 {
		t.Errorf("%d of %d", wrong, runs)
	}
}

// TestStallsOfOthers: a fault that makes every operation a fifth longer is found although others on the host stall a
// tenth of the slices for a hundred times as long.
func TestStallsOfOthers(t *testing.T) {
	const runs = 200
	found := 0
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 6))
		var trials []Trial
		var made clients.Summary
		for _, block := range plan(seed, make([]Fault, 1)) {
			for _, set := range block {
				start := int64(len(made.Slices)) * int64(slice)
				trial := Trial{mask: set, StartNs: start - int64(settling)}
				for range 17 {
					ms := (1 + 0.2*float64(set)) * math.Exp(0.1*r.NormFloat64())
					if r.IntN(10) == 0 {
						ms *= 100
					}
					made.Slices = append(made.Slices, protocol.Slice{Operations: 20, Ns: int64(20 * ms * 1e6)})
				}
				trial.EndNs = int64(len(made.Slices)) * int64(slice)
				trials = append(trials, trial)
			}
		}
		count(trials, &Trial{}, made)
		if costs([]Fault{{Cause: "x"}}, trials, 1)[0].Hurts {
			found++
		}
	}
	t.Logf("%d of %d", found, runs)
	if found < runs*9/10 {
		t.Errorf("found in %d of %d", found, runs)
	}
}

// TestLateOperations: of a slice, whose longest operation is known and the sum of all.
func TestLateOperations(t *testing.T) {
	const ms = int64(1e6)
	for name, c := range map[string]struct {
		slice protocol.Slice
		want  int64
	}{
		"as usual":                  {protocol.Slice{Operations: 20, Ns: 20 * ms, MaxNs: 2 * ms}, 0},
		"one":                       {protocol.Slice{Operations: 20, Ns: 29 * ms, MaxNs: 10 * ms}, 1},
		"one after the other":       {protocol.Slice{Operations: 20, Ns: 20*ms + 45*ms, MaxNs: 10 * ms}, 5},
		"all":                       {protocol.Slice{Operations: 20, Ns: 200 * ms, MaxNs: 10 * ms}, 20},
		"failed":                    {protocol.Slice{Operations: 20, Ns: 20 * ms, MaxNs: ms, Failed: 7}, 7},
		"more time than operations": {protocol.Slice{Operations: 2, Ns: 200 * ms, MaxNs: 10 * ms}, 2},
	} {
		if got := (counted{Slice: c.slice}).lateOperations(float64(ms)); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestCountSlices: a slice counts for the trial that it is in as a whole.
func TestCountSlices(t *testing.T) {
	const ms = int64(1e6)
	trials := []Trial{{StartNs: 1000 * ms, EndNs: 2000 * ms}}
	all := make([]protocol.Slice, 60)
	for i := range all {
		all[i] = protocol.Slice{Operations: 2, Ns: 2 * ms}
	}
	all[21].Failed = 1                                             // 1060 ms: the trial settles
	all[23].Failed, all[39].Failed, all[40].Failed = 10, 100, 1000 // 1160, 1960 ms, and 2010 ms in the next trial
	all[25].Ns, all[25].MaxNs = 20*ms, 11*ms
	watch := Trial{StartNs: 2100 * ms, EndNs: 2350 * ms}
	all[50].Ns, all[50].MaxNs = 20*ms, 11*ms // 2510 ms: after the watch
	all[45].Ns, all[45].MaxNs = 22*ms, 12*ms // 2260 ms, late by what is usual in the trials
	count(trials, &watch, clients.Summary{StartUnix: 10 * ms, Slices: all})
	if watch.Operations != 2 || watch.LateSlices != 1 || watch.LostNs != 20*ms {
		t.Errorf("%+v", watch)
	}
	trial := trials[0]
	if trial.Operations != 2*16 || trial.Failed != 10 || trial.Ns != (2*15+20)*ms || trial.LostNs != 18*ms {
		t.Errorf("%+v", trial)
	}
	if math.Abs(trial.LogNs-math.Log(1e6)-math.Log(10)/16) > 1e-9 || math.Abs(trial.Rank-0.5) > 1e-9 {
		t.Errorf("mean logarithm %g, mean rank %g", trial.LogNs, trial.Rank)
	}
}

// TestNoticed: what nobody notices is not the truth, however sure it is, and a finding of it is not wrong either.
func TestNoticed(t *testing.T) {
	much := func(set int) float64 { return 1 + 3*float64(set) }
	const churn = "short-lived-connections"
	for name, c := range map[string]struct {
		cause   string
		took    func(set int) float64 // ms
		late    int                   // slices of a trial with the fault
		hurts   bool
		noticed bool
	}{
		"a little, always":  {churn, func(set int) float64 { return 0.3 + 0.1*float64(set) }, 0, true, false},
		"much, always":      {churn, much, 0, true, true},
		"one in 50 is late": {churn, func(int) float64 { return 0.3 }, 2, true, true},
		"nothing":           {churn, func(int) float64 { return 0.3 }, 0, false, false},
		"a longer path":     {"rtt-floor", much, 0, true, false},
		"a much longer one": {"rtt-floor", much, 2, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			faults := []Fault{{Name: c.cause, Cause: c.cause}}
			trials := trialsOf(1, 1, c.took)
			for i := range trials {
				trials[i].LateSlices = c.late * trials[i].mask
			}
			const workers = 4 // each makes about 40 operations per second
			r := Run{Costs: costs(faults, trials, workers), Drawn: Drawn{Faults: faults}, Trials: trials}
			if c.noticed {
				r.Watch.Late = 1 // while the recording was made, too
			}
			r.Truth = truth(faults, r.Costs)
			cost := r.Costs[0]
			if cost.Hurts != c.hurts || cost.Noticed != c.noticed || r.Healthy() == c.noticed {
				t.Errorf("%+v, healthy %v", cost, r.Healthy())
			}
			if open := r.isOpen(c.cause); open != (c.hurts && !c.noticed) {
				t.Errorf("open: %v", open)
			}
			if r.Watch.Late = 0; r.isOpen(c.cause) != c.hurts {
				t.Errorf("what nobody noticed in the recording is not open")
			}
		})
	}
}
