package verdict

import (
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
			c.Ledger.Slow = append(c.Ledger.Slow, account.Account{ExcessNs: ns, Weight: 1})
			c.Ledger.ExcessNs += ns
			c.Ledger.Users.ExcessNs += ns
		}
		fs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) cause.Finding { return drawFinding(t, calls) }), 0, 6).
			Draw(t, "findings")
		lost := shareLostTime(c, fs)
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

// drawFinding draws a finding that claims time of some slow calls, and other time.
func drawFinding(t *rapid.T, calls int) cause.Finding {
	cl := cause.Claimed{}
	for i := range calls {
		if rapid.Bool().Draw(t, "claims call") {
			ns := rapid.Int64Range(0, 2e9).Draw(t, "of call")
			cl.Calls = append(cl.Calls, facts.CallNs{Index: i, Ns: float64(ns)})
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
