package law

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// TestEachNanosecondOnce: whatever is claimed, each nanosecond is given once, what nobody claims stays unexplained, and
// it does not matter in which order causes are asked.
func TestEachNanosecondOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCase(t)
		of := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Claimant { return drawClaimant(t, c) }), 0, 6).
			Draw(t, "claimants")
		for i := range of {
			of[i].ID = fmt.Sprint("cause ", i)
			if i > 0 && rapid.Bool().Draw(t, "is a consequence") {
				of[i].After = []string{of[rapid.IntRange(0, i-1).Draw(t, "of")].ID}
			}
		}
		s := Of(c).Share(of)
		given, inCalls := 0.0, 0.0
		for column, ns := range s.Unclaimed {
			given, inCalls = given+ns, inCalls+ns
			checkColumn(t, column, ns)
		}
		for i := range of {
			got := s.Got(i)
			given += got
			if got > s.Alone[i]*(1+1e-9)+1 {
				t.Fatalf("claimant %d got %v, alone it would have got %v", i, got, s.Alone[i])
			}
			for column, ns := range s.Cells[i] {
				checkColumn(t, column, ns)
				if column.Kind == "" {
					inCalls += ns
				}
			}
		}
		if !near(given, s.Ns) || !near(inCalls, float64(c.Ledger.ExcessNs)) {
			t.Fatalf("%v of %v ns given, %v of %v in slow calls", given, s.Ns, inCalls, c.Ledger.ExcessNs)
		}
		checkOrder(t, c, of, s)
	})
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(a, b)+10 }

func checkColumn(t *rapid.T, of Column, ns float64) {
	if ns < 0 || math.IsNaN(ns) {
		t.Fatalf("%v ns in %+v", ns, of)
	}
}

// checkOrder shares again with the claimants in another order.
func checkOrder(t *rapid.T, c *facts.Case, of []Claimant, s Shares) {
	at := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 0)).Perm(len(of))
	other := make([]Claimant, len(of))
	for i, k := range at {
		other[k] = of[i]
	}
	again := Of(c).Share(other)
	for i, k := range at {
		if !near(s.Got(i), again.Got(k)) {
			t.Fatalf("claimant %d got %v, and %v in another order", i, s.Got(i), again.Got(k))
		}
	}
}

var drawnStates = []string{account.Busy, account.Exec, account.RunQueue}

func drawCase(t *rapid.T) *facts.Case {
	c := facts.New(recording.New())
	c.Ledger, c.EndNs = &account.Ledger{}, 1
	at := int64(0)
	for range rapid.IntRange(0, 20).Draw(t, "slow calls") {
		excess := rapid.Int64Range(1, 1e9).Draw(t, "excess")
		a := account.Account{ExcessNs: excess, Weight: 1, Call: recording.Call{IntendedNs: at}}
		for left := excess + rapid.Int64Range(0, 1e6).Draw(t, "baseline"); left > 0; {
			ns := rapid.Int64Range(1, left).Draw(t, "segment")
			if len(a.Segments) == 7 {
				ns = left
			}
			a.Segments = append(a.Segments, account.Segment{
				Actor: account.Server, State: rapid.SampledFrom(drawnStates).Draw(t, "state"), FromNs: at,
				ToNs: at + ns,
			})
			left, at = left-ns, at+ns
		}
		a.Call.EndNs = at
		c.Ledger.Slow = append(c.Ledger.Slow, a)
		c.Ledger.ExcessNs += excess
	}
	return c
}

// drawClaimant draws a cause that claims time of some slow calls, and other time.
func drawClaimant(t *rapid.T, c *facts.Case) Claimant {
	cl := Claim{}
	for i, a := range c.Ledger.Slow {
		if !rapid.Bool().Draw(t, "claims call") {
			continue
		}
		call := facts.CallNs{Index: i}
		for _, s := range a.Segments {
			if rapid.Bool().Draw(t, "claims segment") {
				call.Times.Add(s, rapid.Int64Range(1, s.Ns()).Draw(t, "of it"))
			}
		}
		if call.Ns = float64(call.Times.Ns()); len(call.Times) == 0 {
			call.Ns = float64(rapid.Int64Range(0, 2e9).Draw(t, "of call"))
		}
		cl.Calls = append(cl.Calls, call)
	}
	kinds := []facts.LossKind{facts.LostInCalls, facts.LostOpening, facts.LostWaiting, facts.LostSilent}
	for range rapid.IntRange(0, 3).Draw(t, "losses") {
		cl.Losses = append(cl.Losses, facts.Loss{
			Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Ns: float64(rapid.Int64Range(0, 2e9).Draw(t, "lost")),
			EachNs: facts.HealthyMaxNs,
		})
	}
	return Claimant{Grade: rapid.SampledFrom(Grades).Draw(t, "grade"), Claims: []Claim{cl}}
}

// TestWhoGetsIt: the better grade wins, then what is no consequence, and equals share.
func TestWhoGetsIt(t *testing.T) {
	c := facts.New(recording.New())
	a := account.Account{ExcessNs: 100, Weight: 1, Call: recording.Call{EndNs: 100}, Segments: []account.Segment{
		{Actor: account.Server, State: account.Busy, FromNs: 0, ToNs: 100},
	}}
	c.Ledger = &account.Ledger{Slow: []account.Account{a}, ExcessNs: 100}
	claims := func(id string, grade Grade, from, to int64, after ...string) Claimant {
		times := facts.StateTimes{}
		times.Add(account.Segment{Actor: account.Server, State: account.Busy, FromNs: from, ToNs: to}, to-from)
		return Claimant{
			ID: id, Grade: grade, After: after,
			Claims: []Claim{{Calls: []facts.CallNs{{Index: 0, Ns: float64(to - from), Times: times}}}},
		}
	}
	for name, of := range map[string]struct {
		of   []Claimant
		want []float64
	}{
		"apart":       {[]Claimant{claims("a", Seen, 0, 40), claims("b", Eliminated, 40, 90)}, []float64{40, 50}},
		"better":      {[]Claimant{claims("a", Counted, 0, 60), claims("b", Seen, 20, 80)}, []float64{20, 60}},
		"consequence": {[]Claimant{claims("a", Seen, 0, 60, "b"), claims("b", Seen, 20, 80)}, []float64{20, 60}},
		"equals":      {[]Claimant{claims("a", Seen, 0, 60), claims("b", Seen, 20, 80)}, []float64{40, 40}},
		"consequence that is known better": {
			[]Claimant{claims("a", Seen, 0, 60, "b"), claims("b", Inferred, 20, 80)}, []float64{60, 20},
		},
	} {
		s := Of(c).Share(of.of)
		for i, want := range of.want {
			if got := s.Got(i); math.Abs(got-want) > 1e-6 {
				t.Errorf("%s: claimant %d got %v, want %v", name, i, got, want)
			}
		}
	}
}
