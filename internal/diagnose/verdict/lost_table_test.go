package verdict_test

import (
	"math"
	"testing"

	"slowpath/internal/diagnose/verdict"
)

// checkLostTime checks that the lost time is one table: its rows are what the findings explain, its columns what was
// lost in the states of the account, and all of it the excess.
func checkLostTime(t *testing.T, key string, d verdict.Diagnosis) {
	t.Helper()
	columns := make([]int64, len(d.LostTime.States))
	byCause := map[string]verdict.LostToCause{}
	for _, r := range d.LostTime.Causes {
		sum := int64(0)
		for i, ns := range r.Cells {
			if ns < 0 {
				t.Errorf("%s: %s explains %d ns of %+v", key, r.Cause, ns, d.LostTime.States[i])
			}
			sum += ns
			if r.Because == "" {
				columns[i] += ns
			}
		}
		if sum != r.Ns || len(r.Cells) != len(columns) {
			t.Errorf("%s: the cells of %s are %v and add up to %d, not %d", key, r.Cause, r.Cells, sum, r.Ns)
		}
		byCause[r.Cause] = r
	}
	all := int64(0)
	for i, s := range d.LostTime.States {
		all += s.Ns
		if columns[i] != s.Ns {
			t.Errorf("%s: %s %s: the causes have %d ns of %d", key, s.Actor, s.State, columns[i], s.Ns)
		}
		checkState(t, key, s, d.Account)
	}
	if all != d.Excess.Ns || byCause[verdict.Unexplained].Ns != d.Excess.UnexplainedNs {
		t.Errorf("%s: %d ns, of which %d are unexplained; the excess is %+v", key, all,
			byCause[verdict.Unexplained].Ns, d.Excess)
	}
	if len(d.LostTime.Causes) != len(d.Findings)+1 {
		t.Fatalf("%s: %d rows, %d findings", key, len(d.LostTime.Causes), len(d.Findings))
	}
	for i, f := range d.Findings {
		checkRow(t, key, d, i, d.LostTime.Causes[i])
		if root := byCause[f.Because]; f.Because != "" && (root.Cause == "" || f.ExcessShare > 1e-9 &&
			root.Ns < byCause[f.Cause].Ns) {
			t.Errorf("%s: %s is a consequence of %s, which explains only %d ns", key, f.Cause, f.Because, root.Ns)
		}
	}
}

// checkRow checks that a row is that of a finding, and the share of the finding that of its cells.
func checkRow(t *testing.T, key string, d verdict.Diagnosis, i int, r verdict.LostToCause) {
	t.Helper()
	f := d.Findings[i]
	if r.Cause != f.Cause || r.Because != f.Because {
		t.Errorf("%s: row %d is of %s (because %q), the finding is %s (%q)", key, i, r.Cause, r.Because, f.Cause,
			f.Because)
	}
	rounding := float64(len(r.Cells)*(len(d.Findings)+1)) + 1e-9*float64(d.Excess.Ns)
	if diff := math.Abs(f.ExcessShare*float64(d.Excess.Ns) - float64(r.Ns)); diff > rounding {
		t.Errorf("%s: %s explains %v of %d ns; its cells add up to %d", key, f.Cause, f.ExcessShare, d.Excess.Ns, r.Ns)
	}
	for _, o := range r.Overlaps {
		if o.Ns <= 0 || o.Cause == r.Cause || float64(o.Ns) > f.ClaimedShare*float64(d.Excess.Ns)+rounding {
			t.Errorf("%s: %s claims %v of the lost time, and overlaps %+v", key, f.Cause, f.ClaimedShare, o)
		}
	}
}

// checkState checks that the account says the same of a state, and that no more was lost than spent.
func checkState(t *testing.T, key string, s verdict.LostState, states []verdict.State) {
	t.Helper()
	if s.Actor == verdict.Elsewhere {
		return
	}
	for _, of := range states {
		if of.Actor == s.Actor && of.State == s.State {
			if of.LostNs != s.Ns || of.LostNs > of.Ns+1 {
				t.Errorf("%s: %d ns lost in a state, the account has %+v", key, s.Ns, of)
			}
			return
		}
	}
	t.Errorf("%s: %d ns lost in %s %s, which the account does not have", key, s.Ns, s.Actor, s.State)
}
