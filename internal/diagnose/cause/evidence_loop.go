package cause

import (
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/stats"
)

const (
	// fewLoopSamples are too few for a share.
	// Bound: statistics, the standard error of a share of 10 samples is up to 16 percentage points.
	fewLoopSamples = 10
	// mostOfLoop: what the thread did in more of its samples is the reason why it was busy.
	// Bound: majority, of the samples, by the lower end of their interval.
	mostOfLoop = 0.5
)

// mostlyIn reports whether so many samples of the main thread have something that it is the reason, beyond chance.
func mostlyIn(t facts.LoopTime, samples int) bool {
	low, _ := stats.Proportion(samples, t.Samples)
	return t.Samples >= fewLoopSamples && low > mostOfLoop
}

// inLoop is what the stacks of the main thread say of one meaning, where it is the reason why the thread was busy; ok
// is false where it is not.
func inLoop(n *facts.Node, id string) (p facts.LoopPart, cl facts.Claim, ok bool) {
	t := n.LoopTime()
	for _, p := range t.Parts {
		if p.ID == id && mostlyIn(t, p.Samples) {
			return p, n.ClaimOfLoop(func(o facts.LoopPart) bool { return o.ID == id }), true
		}
	}
	return p, cl, false
}

// supportLoop says in which function the main thread was.
func (f *Finding) supportLoop(n *facts.Node, p facts.LoopPart) {
	t := n.LoopTime()
	what := p.What
	if what == "" {
		what = "work that is not known"
	}
	rest := ""
	if t.RestSamples >= fewLoopSamples {
		rest = "; in the rest of the watch " + format.Percent(float64(p.RestSamples)/float64(t.RestSamples))
	}
	f.support(recording.SourceProfile, float64(p.Samples), "samples",
		"%d of %d samples of the main thread while calls waited, and no command is known for it: %s, mostly in %s%s",
		p.Samples, t.Samples, what, p.Function, rest)
}
