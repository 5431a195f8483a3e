package random

import (
	"fmt"
	"slices"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

// Finding is a finding of the diagnosis, compared with the truth.
type Finding struct {
	Cause      string      `json:"cause"`
	Share      float64     `json:"share"` // of the excess
	Confidence float64     `json:"confidence"`
	Grade      cause.Grade `json:"grade"`
	Few        bool        `json:"few,omitempty"`  // it rests on few calls
	Main       bool        `json:"main,omitempty"` // it explains most of the lost time
	Because    string      `json:"because,omitempty"`
	// Culprits are the CLIENT SETNAMEs of those who have to change, the first one first; CulpritPID is that one's
	// process, where it is known.
	Culprits   []string `json:"culprits,omitempty"`
	CulpritPID int      `json:"culprit_pid,omitempty"`
	// Right: the cause is true, or it is said to be a consequence of one that is, or the trials left it open.
	Right bool `json:"right"`
	// Made: a fault of this cause was on, whether or not it cost the callers anything.
	Made bool `json:"made"`
}

// Judgement is what the diagnosis of a recording says by a tier.
type Judgement struct {
	Verdict  string    `json:"verdict"`
	First    string    `json:"first"` // cause of the first finding, or the verdict without one
	Findings []Finding `json:"findings"`
	ExcessNs int64     `json:"excess_ns"`
	// Unexplained is the share of the excess that no source saw.
	Unexplained float64 `json:"unexplained"`
}

// Judge diagnoses the recording of a run by all tiers.
func (r *Run) Judge(file, version string) error {
	rec, err := recording.Open(file)
	if err != nil {
		return fmt.Errorf("seed %d: %w", r.Seed, err)
	}
	r.Settle()
	r.Version, r.Tiers = version, map[string]Judgement{}
	for _, tier := range recording.Tiers {
		r.Tiers[tier.Name] = r.judgement(verdict.Diagnose(rec.Without(tier.Without...), version))
	}
	best := r.Tiers[recording.Tiers[0].Name]
	r.First, r.Findings = best.First, best.Findings
	return nil
}

// Settle sets the truth by the trials of a run that was stored: when it was made, other figures may have decided.
func (r *Run) Settle() {
	if len(r.Trials) == 0 {
		return
	}
	for i := range r.Trials {
		r.Trials[i].setMask()
	}
	r.decide()
}

func (r *Run) judgement(d verdict.Diagnosis) Judgement {
	j := Judgement{Verdict: d.Verdict, First: d.Verdict, Findings: []Finding{}, ExcessNs: d.Excess.Ns}
	if d.Excess.Ns > 0 {
		j.Unexplained = float64(d.Excess.UnexplainedNs) / float64(d.Excess.Ns)
	}
	for _, f := range d.Findings {
		j.Findings = append(j.Findings, Finding{
			Cause: f.Cause, Share: f.ExcessShare, Confidence: f.Confidence, Grade: f.Grade,
			Few: verdict.Few(f), Main: verdict.Main(f), Because: f.Because,
		})
		for i, who := range f.Culprits {
			of := &j.Findings[len(j.Findings)-1]
			of.Culprits = append(of.Culprits, who.ClientName)
			if i == 0 {
				of.CulpritPID = who.PID
			}
		}
	}
	return r.compare(j)
}

// compare compares a judgement with the truth.
func (r *Run) compare(j Judgement) Judgement {
	for i := range j.Findings {
		f := &j.Findings[i]
		f.Right = r.right(*f, j.Findings)
		f.Made = slices.ContainsFunc(r.Drawn.Faults, func(m Fault) bool { return m.Cause == f.Cause })
	}
	if len(j.Findings) > 0 {
		j.First = j.Findings[0].Cause
	}
	return j
}

// Grade compares what a tool says with the truth. Its judgement is kept by the tool's name.
func (r *Run) Grade(tool, verdict string, findings []Finding) {
	if r.Tiers == nil {
		r.Tiers = map[string]Judgement{}
	}
	r.Tiers[tool] = r.compare(Judgement{Verdict: verdict, First: verdict, Findings: findings})
}

// saysHealthy tells whether a judgement of a healthy run is right: it names nothing but what the trials left open.
func (j Judgement) saysHealthy() bool {
	return j.Verdict == verdict.Healthy ||
		len(j.Findings) > 0 && !slices.ContainsFunc(j.Findings, func(f Finding) bool { return !f.Right })
}

// right tells whether a finding is true, or a consequence of one that is, directly or through other findings.
func (r *Run) right(f Finding, all []Finding) bool {
	for range all { // a chain has no more steps
		if r.isTrue(f.Cause) || r.isOpen(f.Cause) {
			return true
		}
		i := slices.IndexFunc(all, func(root Finding) bool { return root.Cause == f.Because })
		if i < 0 {
			return r.isTrue(f.Because)
		}
		f = all[i]
	}
	return r.isTrue(f.Cause)
}

// isTrue tells whether a cause cost the callers time.
func (r *Run) isTrue(id string) bool {
	return slices.ContainsFunc(r.Truth, func(t Truth) bool { return t.is(id) })
}

// isOpen tells whether it was left open if a cause cost callers time that they notice: by the trials, or since nobody
// noticed anything while the recording was made.
func (r *Run) isOpen(id string) bool {
	if r.disturbed() {
		return true
	}
	noticed := r.noticedInWatch()
	for i, f := range r.Drawn.Faults {
		c, kind := r.Costs[i], f.kind()
		open := c.Open() || c.Hurts && !noticed || !c.Hurts && kind.Calls
		if open && (c.Cause == id || slices.Contains(kind.Also, id)) {
			return true
		}
	}
	return false
}

// disturbed tells whether something else than the faults cost the callers time while the recording was made: it is not
// known what.
func (r *Run) disturbed() bool {
	return r.noticedInWatch() &&
		!slices.ContainsFunc(r.Costs, func(c Cost) bool { return c.Hurts && c.Noticed })
}

// noticedInWatch tells whether the callers were late in the watch, and seldom in trials without a fault: a fault that
// is rare may hurt then, and in few of the trials.
func (r *Run) noticedInWatch() bool {
	late, long, ns, n := 0.0, 0.0, 0.0, 0.0
	for _, t := range r.Trials {
		if len(t.Faults) == 0 && t.Operations > 0 {
			late, long, ns, n = late+lateShare(t), long+longPerSecond(t), ns+meanNs(t), n+1
		}
	}
	n = max(n, 1)
	return r.Watch.Late-late/n >= noticedLate || r.Watch.Long-long/n >= noticedLong ||
		busy(r.Watch.MeanNs-ns/n, r.Trials, r.Drawn.workers()) >= noticedBusy
}

// Healthy tells whether no fault cost the callers time that they notice.
func (r *Run) Healthy() bool { return r.isTrue(healthy) }

// Failed tells whether there is nothing to judge.
func (r *Run) Failed() bool { return r.Skipped != "" || r.Error != "" }

// healthy is the truth without a fault that hurts, and the verdict that is right then.
const healthy = verdict.Healthy
