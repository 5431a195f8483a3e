package cause

import (
	"slices"

	"slowpath/internal/diagnose/changes"
	"slowpath/internal/diagnose/facts"
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
	// ExcessShare is the share of the time that callers lost, 0..1. Each nanosecond counts for one finding at most: the
	// shares of all findings add up to 1 at most. A cause sets what it would explain alone.
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
	Culprits []facts.Culprit `json:"culprits,omitempty"`
	// Changes are what was changed before, those first that the mechanism of the cause names.
	Changes []changes.Cited `json:"changes,omitempty"`
	// Because is the id of the root cause of which this finding is a consequence, if any.
	Because string `json:"because,omitempty"`
	// ClaimedShare is what the finding would explain of the lost time if it were the only one. A cause sets the part of
	// ExcessShare that comes from the time of slow calls alone, not from a pattern of all calls.
	ClaimedShare float64 `json:"claimed_share"`
	// Strength is how much the evidence speaks for the cause, 0..1. It orders findings, and is no probability.
	Strength float64 `json:"-"`
	// Missed is the share of its evidence that its sources missed.
	Missed float64 `json:"-"`
	// Eliminated: it explains time that no source saw the reason of.
	Eliminated bool `json:"-"`
	// Patterned: what it claims beside slow calls is a share of all calls, which it infers.
	Patterned bool `json:"-"`
	// Claims are the time that it explains, by node.
	Claims []Claimed `json:"-"`
	// Steady is that of its cause.
	Steady bool `json:"-"`
	// FromSlowCalls: what it claims beside slow calls follows from them.
	FromSlowCalls bool `json:"-"`
	// Unnoticed: it takes so little time that it is said as the consequence of another finding only.
	Unnoticed bool `json:"-"`
	// Noticed: callers lose more than is seen of slow calls, so much that they notice.
	Noticed bool `json:"-"`
	// Leads: the finding comes before the causes that it consists of, since most slow calls show its pattern.
	Leads bool `json:"-"`
	// Independent: by the evidence it is no consequence of any cause in After.
	Independent bool `json:"-"`
	// IndependentOf are the causes in After of which, by the evidence, it is no consequence.
	IndependentOf []string `json:"-"`
}

// Grade is how well the evidence of a finding is known.
type Grade string

// The grades, the best first.
const (
	Seen       Grade = "seen"       // in the kernel, for these calls
	Counted    Grade = "counted"    // in the same window, by the server or the host
	Inferred   Grade = "inferred"   // from a pattern of calls
	Eliminated Grade = "eliminated" // no source saw another reason
)

// Grades are all, the best first.
var Grades = []Grade{Seen, Counted, Inferred, Eliminated}

// Weaker is the next grade below.
func (g Grade) Weaker() Grade {
	return Grades[min(slices.Index(Grades, g)+1, len(Grades)-1)]
}

// Claimed is the time of a node's callers that a finding explains.
type Claimed struct {
	Node *facts.Node // nil: callers of no single node
	// Calls is what it explains of slow calls.
	Calls []facts.CallNs
	// Losses is what it explains of other time.
	Losses []facts.Loss
}

// claim is the finding's claim on the callers of a node.
func (f *Finding) claim(n *facts.Node) *Claimed {
	for i := range f.Claims {
		if f.Claims[i].Node == n {
			return &f.Claims[i]
		}
	}
	f.Claims = append(f.Claims, Claimed{Node: n})
	return &f.Claims[len(f.Claims)-1]
}

// lose claims time that callers of a node (nil: of no single one) lost outside of slow calls.
func (f *Finding) lose(n *facts.Node, kind facts.LossKind, ns float64) {
	c := f.claim(n)
	c.Losses = append(c.Losses, facts.Loss{Kind: kind, Ns: ns})
}

// mostPattern: a pattern that takes all of the callers' time takes this share of it and of what they do besides.
// Bound: arithmetic, a guard of a division.
const mostPattern = 0.95

// ClaimPattern claims what a finding explains beyond slow calls, where its cause has not claimed that itself: its share
// of the time of the callers of n.
func (f *Finding) ClaimPattern(n *facts.Node, kind facts.LossKind) {
	for _, c := range f.Claims {
		if len(c.Losses) > 0 {
			return
		}
	}
	if f.ExcessShare <= f.ClaimedShare {
		return
	}
	f.Patterned = true
	calls := n.CallTimeNs()
	if kind == "" {
		slow := 0.0
		for _, c := range f.claim(n).Calls {
			slow += c.Ns * n.Ledger.Slow[c.Index].Weight
		}
		f.lose(n, facts.LostInCalls, max(f.ExcessShare*calls-slow, 0))
		return
	}
	part := min(f.ExcessShare, mostPattern)
	f.lose(n, kind, part/(1-part)*calls)
}

// scale leaves only a part of what the finding explains.
func (f *Finding) scale(part float64) {
	f.ExcessShare *= part
	f.ClaimedShare *= part
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
