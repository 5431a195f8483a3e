package verdict

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/facts"
)

// TestLostTimeIsSharedOnce: whatever findings claim, each nanosecond counts for one of them at most, and what nobody
// claims is unexplained.
func TestLostTimeIsSharedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &facts.Case{Ledger: &account.Ledger{}}
		calls := rapid.IntRange(0, 20).Draw(t, "slow calls")
		for range calls {
			ns := rapid.Int64Range(1, 1e9).Draw(t, "excess")
			c.Ledger.Slow = append(c.Ledger.Slow, drawAccount(t, ns))
			c.Ledger.ExcessNs += ns
			c.Ledger.Users.ExcessNs += ns
		}
		fs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) cause.Finding { return drawFinding(t, calls) }), 0, 6).
			Draw(t, "findings")
		for i := range fs {
			fs[i].Cause = fmt.Sprint("cause ", i)
			if i > 0 && rapid.Bool().Draw(t, "is a consequence") {
				fs[i].Because = fs[rapid.IntRange(0, i-1).Draw(t, "of")].Cause
			}
		}
		lost := shareLostTime(c, fs)
		checkTable(t, lost.table(fs), c, fs)
		explained := 0.0
		for i, f := range fs {
			explained += f.ExcessShare
			if f.ExcessShare < 0 || f.ClaimedShare > 1 || f.ExcessShare > f.ClaimedShare+1e-9 {
				t.Fatalf("finding %d: share %v of the claimed %v", i, f.ExcessShare, f.ClaimedShare)
			}
		}
		if lost.ns < float64(c.Ledger.ExcessNs) {
			t.Fatalf("%v ns lost, less than the %d of slow calls", lost.ns, c.Ledger.ExcessNs)
		}
		if sum := explained + lost.unexplained/max(lost.ns, 1); lost.ns > 1 && (sum < 1-1e-6 || sum > 1+1e-6) {
			t.Fatalf("findings explain %v, and %v ns of %v are unexplained: not all of it", explained,
				lost.unexplained, lost.ns)
		}
	})
}

var drawnStates = []string{account.Busy, account.Exec, account.RunQueue}

// drawAccount draws a slow call with an excess, and a baseline and states around it.
func drawAccount(t *rapid.T, excess int64) account.Account {
	a := account.Account{ExcessNs: excess, Weight: 1}
	left, at := excess+rapid.Int64Range(0, 1e6).Draw(t, "baseline"), int64(0)
	for left > 0 {
		ns := rapid.Int64Range(1, left).Draw(t, "segment")
		a.Segments = append(a.Segments, account.Segment{
			Actor: account.Server, State: rapid.SampledFrom(drawnStates).Draw(t, "state"), FromNs: at, ToNs: at + ns,
		})
		left, at = left-ns, at+ns
		if len(a.Segments) == 8 {
			a.Segments[7].ToNs, left = at+left, 0
		}
	}
	return a
}

// checkTable checks that a table has all the time, and no more of a state than passed in it.
func checkTable(t *rapid.T, table LostTime, c *facts.Case, fs []cause.Finding) {
	rounding := int64(len(fs) + 2)
	in := map[string]int64{}
	for _, a := range c.Ledger.Slow {
		for _, s := range a.Segments {
			in[s.State] += s.Ns()
		}
	}
	inCalls := int64(0)
	for _, s := range table.States {
		if s.Actor == Elsewhere {
			continue
		}
		inCalls += s.Ns
		if s.Ns > in[s.State]+rounding {
			t.Fatalf("%d ns lost in %s, in which %d passed", s.Ns, s.State, in[s.State])
		}
	}
	if diff := inCalls - c.Ledger.ExcessNs; diff > 4*rounding || diff < -4*rounding {
		t.Fatalf("%d ns of slow calls in the table, the excess is %d: %+v", inCalls, c.Ledger.ExcessNs, table)
	}
	for i, r := range table.Causes {
		sum := int64(0)
		for _, ns := range r.Cells {
			if sum += ns; ns < 0 {
				t.Fatalf("row %d: %v", i, r.Cells)
			}
		}
		if sum != r.Ns {
			t.Fatalf("row %d: cells of %d ns, %d in all", i, sum, r.Ns)
		}
		for _, o := range r.Overlaps {
			if at := slices.IndexFunc(fs, func(f cause.Finding) bool { return f.Cause == o.Cause }); at < 0 || at >= i {
				t.Fatalf("row %d overlaps %+v, which did not take before it", i, o)
			}
		}
	}
}

// drawFinding draws a finding that claims time of some slow calls, and other time.
func drawFinding(t *rapid.T, calls int) cause.Finding {
	cl := cause.Claimed{}
	for i := range calls {
		if rapid.Bool().Draw(t, "claims call") {
			ns := rapid.Int64Range(0, 2e9).Draw(t, "of call")
			call := facts.CallNs{Index: i, Ns: float64(ns)}
			states := rapid.SliceOfDistinct(rapid.SampledFrom(drawnStates), rapid.ID[string])
			for _, state := range states.Draw(t, "in") {
				call.Times = append(call.Times, facts.StateTime{Actor: account.Server, State: state, Ns: float64(ns)})
			}
			cl.Calls = append(cl.Calls, call)
		}
	}
	kinds := []facts.LossKind{facts.LostInCalls, facts.LostOpening, facts.LostWaiting, facts.LostSilent}
	for range rapid.IntRange(0, 3).Draw(t, "losses") {
		cl.Losses = append(cl.Losses, facts.Loss{
			Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Ns: float64(rapid.Int64Range(0, 2e9).Draw(t, "lost")),
		})
	}
	return cause.Finding{Claims: []cause.Claimed{cl}}
}

// TestRootCauseTakesFirst: what two findings claim alike belongs to the first.
func TestRootCauseTakesFirst(t *testing.T) {
	c := &facts.Case{Ledger: &account.Ledger{
		Slow: []account.Account{{ExcessNs: 100, Weight: 1}, {ExcessNs: 100, Weight: 1}}, ExcessNs: 200,
		Users: account.Callers{ExcessNs: 200},
	}}
	both := []facts.CallNs{{Index: 0, Ns: 60}, {Index: 1, Ns: 100}}
	fs := []cause.Finding{
		{Claims: []cause.Claimed{{Calls: both[1:]}}},
		{Claims: []cause.Claimed{{Calls: both}}},
	}
	lost := shareLostTime(c, fs)
	if fs[0].ExcessShare != 0.5 || fs[1].ExcessShare != 0.3 || fs[1].ClaimedShare != 0.8 || lost.unexplained != 40 {
		t.Errorf("shares %v and %v (claimed %v), unexplained %v", fs[0].ExcessShare, fs[1].ExcessShare,
			fs[1].ClaimedShare, lost.unexplained)
	}
}
