package random

import (
	"math"
	"testing"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

// judged is a run with the same judgement by all tiers.
func judged(seed uint64, truths []Truth, d verdict.Diagnosis, faults ...Fault) Run {
	r := Run{Seed: seed, Truth: truths, Drawn: Drawn{Faults: faults}, Tiers: map[string]Judgement{}}
	r.Costs = make([]Cost, len(faults))
	for _, tier := range recording.Tiers {
		r.Tiers[tier.Name] = r.judgement(d)
	}
	return r
}

func diagnosis(fs ...cause.Finding) verdict.Diagnosis {
	d := verdict.Diagnosis{Verdict: verdict.Findings, Findings: fs}
	if len(fs) == 0 {
		d.Verdict = verdict.Healthy
	}
	return d
}

func TestSummarise(t *testing.T) {
	none := []Truth{{Cause: healthy}}
	slow, far := Fault{Name: "slow-command", Cause: "slow-command"}, Fault{Name: "rtt-floor", Cause: "rtt-floor"}
	runs := []Run{
		judged(1, none, diagnosis()),
		judged(2, none, diagnosis(cause.Finding{Cause: "rtt-floor", Confidence: 0.5, ExcessShare: 1}), far),
		judged(3, []Truth{{Cause: "slow-command", Share: 0.6}, {Cause: "rtt-floor", Share: 0.4}}, diagnosis(
			cause.Finding{Cause: "slow-command", Confidence: 0.9, ExcessShare: 0.8},
			cause.Finding{Cause: "pool-exhausted-wait", Confidence: 0.9, Because: "slow-command"},
			cause.Finding{Cause: "swap", Confidence: 0.9}), slow, far),
		judged(4, []Truth{{Cause: "rtt-floor", Share: 1}}, diagnosis(), far),
		{Seed: 5, Error: "no server"},
	}
	runs[0].Watch.Late = 1 // by something else
	r := Summarise(runs, 1, 6, "v")
	if r.FirstNamed != 1 || r.Named != 1 || r.FalseFindings != 2 || r.HealthyRuns != 2 || r.Failed != 1 || r.N != 6 {
		t.Errorf("%+v", r)
	}
	if r.Disturbed != 1 {
		t.Errorf("%d disturbed", r.Disturbed)
	}
	best := r.Tiers["T2"]
	if best.FaultRuns != 2 || best.Named.Of != 3 || best.HealthyKept.Count != 1 || best.FalseOfFaults != 1 {
		t.Errorf("%+v", best)
	}
	// 0.5² and 0.9² for the false ones, 0.1² for the others
	if want := (0.25 + 0.81 + 0.01 + 0.01) / 4; math.Abs(r.Brier-want) > 1e-9 {
		t.Errorf("Brier %g, want %g", r.Brier, want)
	}
	if math.Abs(r.ShareError-0.2) > 1e-9 {
		t.Errorf("error of shares %g", r.ShareError)
	}
	if best.FalseInHealthy != 1 || best.FalsePerHundredHealthy != 50 || best.HealthyWrong.Count != 1 ||
		best.HealthyWrong.Of != 2 || best.ShareClose.Count != 0 || best.ShareClose.Of != 1 {
		t.Errorf("healthy runs and shares: %+v", best)
	}
	if c := best.Causes["pool-exhausted-wait"]; c.Right.Count != 1 || c.Right.Of != 1 { // a consequence
		t.Errorf("pool-exhausted-wait: %+v", c)
	}
	if c := best.Causes["rtt-floor"]; c.Right.Of != 1 || c.Truths != 2 || c.Named.Count != 0 || c.False != 1 {
		t.Errorf("rtt-floor: %+v", c)
	}
	if b := best.Calibration[4]; b.Right.Of != 3 || b.Right.Count != 2 || math.Abs(b.Confidence-0.9) > 1e-9 {
		t.Errorf("calibration %+v", best.Calibration)
	}
}

// TestConsequences: a finding that is a consequence of a true cause through others is not false; one of itself ends.
func TestConsequences(t *testing.T) {
	r := Run{Truth: []Truth{{Cause: "a"}}}
	fs := []Finding{
		{Cause: "b", Because: "a"}, {Cause: "c", Because: "b"}, {Cause: "d", Because: "e"}, {Cause: "e", Because: "d"},
	}
	for i, want := range []bool{true, true, false, false} {
		if got := r.right(fs[i], fs); got != want {
			t.Errorf("%s: %v", fs[i].Cause, got)
		}
	}
}

// TestBlames: a culprit is named by its name, or by its process where nobody saw the name.
func TestBlames(t *testing.T) {
	r := Run{CallerPID: 812}
	for name, c := range map[string]struct {
		finding Finding
		culprit string
		want    bool
	}{
		"by name":                 {Finding{Culprits: []string{"report", callersName}}, "report", true},
		"second":                  {Finding{Culprits: []string{"report", callersName}}, callersName, false},
		"by process":              {Finding{Culprits: []string{""}, CulpritPID: 812}, callersName, true},
		"another process":         {Finding{Culprits: []string{""}, CulpritPID: 813}, callersName, false},
		"a load in that process":  {Finding{Culprits: []string{""}, CulpritPID: 812}, "report", false},
		"by process, other names": {Finding{Culprits: []string{"others"}, CulpritPID: 812}, callersName, false},
		"nobody":                  {Finding{}, callersName, false},
	} {
		if got := r.blames(c.finding, Truth{Culprit: c.culprit}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
