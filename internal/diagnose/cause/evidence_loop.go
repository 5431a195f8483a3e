package cause

import (
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// inLoop is what the stacks of the main thread say of one meaning, where it is the reason why the thread was busy; ok
// is false where it is not.
func inLoop(n *facts.Node, id string) (p mainthread.LoopPart, cl facts.Claim, ok bool) {
	t := mainthread.LoopTimeOf(n)
	for _, p := range t.Parts {
		if p.ID == id && t.Mostly(p.Samples) {
			return p, mainthread.ClaimOfLoop(n, func(o mainthread.LoopPart) bool { return o.ID == id }), true
		}
	}
	return p, cl, false
}

// freedKeyNs is the cost of removing a small key, in nanoseconds: evicted along with writes, 1.0 µs on 7.0.15
// (allkeys-lru).
// Bound: noted, on 7.0.15.
const freedKeyNs = 1000

// supportLoop says in which function the main thread was.
func (f *Finding) supportLoop(n *facts.Node, p mainthread.LoopPart) {
	t := mainthread.LoopTimeOf(n)
	what := p.What
	if what == "" {
		what = "work that is not known"
	}
	in := p.Function
	if p.Called != "" {
		in += " → " + p.Called
	}
	rest := ""
	if t.RestSamples >= hosts.FewSamples {
		rest = "; in the rest of the watch " + format.Percent(float64(p.RestSamples)/float64(t.RestSamples))
	}
	f.support(recording.SourceProfile, float64(p.Samples), "samples",
		"%d of %d samples of the main thread while calls waited, and no command is known for it: %s, mostly in %s%s",
		p.Samples, t.Samples, what, in, rest)
}

// add is what two claims explain together, of different time.
func add(c facts.Claim, o facts.Claim) facts.Claim {
	add := func(a, b facts.Affected) facts.Affected {
		return facts.Affected{
			Calls: max(a.Calls, b.Calls), AllCalls: a.AllCalls, Share: max(a.Share, b.Share), MaxNs: max(a.MaxNs,
				b.MaxNs),
		}
	}
	return facts.Claim{
		Calls: max(c.Calls, o.Calls), Ns: c.Ns + o.Ns, MaxNs: max(c.MaxNs, o.MaxNs),
		Users: add(c.Users, o.Users), Probe: add(c.Probe, o.Probe), PerCall: facts.MergeCalls(c.PerCall, o.PerCall),
	}
}
