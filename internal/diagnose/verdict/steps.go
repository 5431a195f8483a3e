package verdict

import (
	"slices"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/remedy"
)

// steps completes the fixes: a step that leaves it to the finding of a slow node becomes the first step of that
// finding; each step gets what the lab measured of it. The lines of a fix follow from its steps.
func steps(found []cause.Finding) {
	for i := range found {
		f := &found[i]
		f.FixSteps = slices.Clone(f.FixSteps)
		if f.FixSteps == nil {
			f.FixSteps = []remedy.Step{}
		}
		for k, s := range f.FixSteps {
			if s.ID == remedy.CureSlowNode {
				s = cureOf(*f, found, s)
			}
			s = s.Finish()
			s.Proof = remedy.ProofOf(f.Cause, s.ID, s.Library)
			f.FixSteps[k] = s
		}
	}
	for i := range found {
		found[i].Fix = remedy.Lines(found[i].FixSteps)
	}
}

// cureOf is the first step of the finding that says why a node of f is slow; s where there is none.
func cureOf(f cause.Finding, found []cause.Finding, s remedy.Step) remedy.Step {
	for _, o := range found {
		same := slices.ContainsFunc(o.Nodes, func(n string) bool { return slices.Contains(f.Nodes, n) })
		if o.Cause == f.Cause || !same || len(o.FixSteps) == 0 || o.FixSteps[0].ID == s.ID {
			continue
		}
		cure := o.FixSteps[0]
		cure.ID, cure.Text = s.ID, "Cure the slow node ("+o.Cause+"). "+cure.Text
		return cure
	}
	return s
}
