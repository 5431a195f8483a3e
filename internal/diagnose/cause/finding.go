package cause

import (
	"slowpath/internal/diagnose/changes"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/diagnose/law"
	"slowpath/internal/diagnose/remedy"
)

// Finding is a cause with the share of the excess that it explains.
type Finding struct {
	Cause string `json:"cause"`
	Layer string `json:"layer"`
	Title string `json:"title"`
	// Nodes are those at which it was found, of several that were watched: those with the largest shares.
	Nodes []string `json:"nodes"`
	// MoreNodes is at how many others it was found, too.
	MoreNodes int `json:"-"`
	SlowCalls int `json:"slow_calls"`
	Of        int `json:"of"`
	// ExcessShare is the share of the time that callers lost, 0..1, with that of its consequences. Each nanosecond
	// counts for one finding at most.
	ExcessShare float64 `json:"excess_share"`
	// Confidence is how often findings of this grade and number of samples were right, 0..1.
	Confidence float64 `json:"confidence"`
	// Grade is how well its evidence is known. A cause sets it where that does not follow from the sources.
	Grade Grade `json:"grade"`
	// Samples is the number of calls that it rests on: slow calls, all that were timed where it is a pattern of all, or
	// what the cause says.
	Samples  int        `json:"samples"`
	Evidence []Evidence `json:"evidence"`
	Against  []Evidence `json:"against"`
	// Fix are the lines of FixSteps.
	Fix []string `json:"fix"`
	// FixSteps are what to do, the best first.
	FixSteps []remedy.Step `json:"fix_steps"`
	See      []string      `json:"see"`
	// Culprits are whose behaviour has to change, the worst first; none where that is not known, or it is nobody's.
	Culprits []caller.Culprit `json:"culprits,omitempty"`
	// Changes are what was changed before, those first that the mechanism of the cause names.
	Changes []changes.Cited `json:"changes,omitempty"`
	// Because is the id of the root cause of which this finding is a consequence, if any.
	Because string `json:"because,omitempty"`
	// ClaimedShare is what the finding would explain of the lost time if it were the only one.
	ClaimedShare float64 `json:"claimed_share"`
	// Doubts is by how many grades its evidence is known less well than its sources can tell, for what speaks against
	// it.
	Doubts int `json:"-"`
	// Missed is the share of its evidence that its sources missed.
	Missed float64 `json:"-"`
	// Claims are the time that it explains, by node.
	Claims []law.Claim `json:"-"`
	// IndependentOf are the causes in After of which, by the evidence, it is no consequence.
	IndependentOf []string `json:"-"`
}

// Grade is how well the evidence of a finding is known.
type Grade = law.Grade

// The grades, the best first.
const (
	Seen       = law.Seen
	Counted    = law.Counted
	Inferred   = law.Inferred
	Eliminated = law.Eliminated
)

// claim is the finding's claim on the callers of a node.
func (f *Finding) claim(n *facts.Node) *law.Claim {
	for i := range f.Claims {
		if f.Claims[i].Node == n {
			return &f.Claims[i]
		}
	}
	f.Claims = append(f.Claims, law.Claim{Node: n})
	return &f.Claims[len(f.Claims)-1]
}

// lose claims time that callers of a node (nil: of no single one) lost outside of slow calls, eachNs at once; see
// facts.Loss.
func (f *Finding) lose(n *facts.Node, kind facts.LossKind, ns float64, eachNs int64) {
	c := f.claim(n)
	c.Losses = append(c.Losses, facts.Loss{Kind: kind, Ns: ns, EachNs: eachNs})
}

// inAll says what all callers of a node lost by what was claimed last; see facts.Loss.
func (f *Finding) inAll(n *facts.Node, ns float64) {
	if losses := f.claim(n).Losses; len(losses) > 0 {
		losses[len(losses)-1].AllNs = ns
	}
}

// ofCalls is inAll for a part of all calls that take longer than they need: a tenth of them is noticed (MinShare),
// however short each is.
func (f *Finding) ofCalls(n *facts.Node, part float64) { f.inAll(n, part*float64(n.EndNs-n.StartNs)) }

// infer says that a finding of a pattern of calls is inferred from it, where its cause does not know better.
func (f *Finding) infer() {
	if f.Grade == "" && f.SlowCalls == 0 {
		f.Grade = Inferred
	}
}

// loseOfCalls claims a share of the time of all calls to a node, with what it claims of slow calls among it.
func (f *Finding) loseOfCalls(n *facts.Node, share float64, eachNs int64) {
	if ns := share*connection.CallTimeNs(n) - f.slowNs(n); ns > 0 {
		f.infer()
		f.lose(n, facts.LostInCalls, ns, eachNs)
	}
}

// slowNs is what it claims of slow calls to a node, in nanoseconds.
func (f *Finding) slowNs(n *facts.Node) (ns float64) {
	for _, c := range f.claim(n).Calls {
		ns += c.Ns * n.Ledger.Slow[c.Index].Weight
	}
	return ns
}

// loseBeside claims time of a kind outside of calls: a share of it and of the time that calls to a node usually take.
func (f *Finding) loseBeside(n *facts.Node, kind facts.LossKind, share float64, eachNs int64) {
	if part := min(share, degree.NearlyAll); part > 0 {
		f.infer()
		f.lose(n, kind, part/(1-part)*connection.LostNs(n, facts.LostInCalls), eachNs)
	}
}

// loseWhile claims what callers lost while nobody was served, by the time of their other calls, beside the slow calls
// that it claims: those that waited meanwhile.
func (f *Finding) loseWhile(n *facts.Node, gone facts.Spans) {
	part := min(float64(gone.TotalNs())/float64(n.EndNs-n.StartNs), degree.NearlyAll)
	slow := f.slowNs(n)
	if ns := part/(1-part)*(connection.CallTimeNs(n)-slow) - slow; ns > 0 {
		f.infer()
		f.lose(n, facts.LostWaiting, ns, facts.HealthyMaxNs)
	}
}

// weaken says that what speaks against the cause leaves its evidence known some grades less well.
func (f *Finding) weaken(grades int) { f.Doubts = max(f.Doubts, grades) }

// scale leaves only a part of what the finding explains.
func (f *Finding) scale(part float64) {
	for _, c := range f.Claims {
		for i := range c.Calls {
			c.Calls[i].Ns *= part
		}
		for i := range c.Losses {
			c.Losses[i].Ns *= part
		}
	}
}

// Evidence is a fact and its source.
type Evidence struct {
	Source string  `json:"source"`
	Text   string  `json:"text"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
}
