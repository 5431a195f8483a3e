// Package cause has the catalogue of causes: mechanisms by which calls get slow. A cause is a pair of files, named
// after its id. The Markdown file says what it is and how it is told apart. The Go file has its declaration and its
// predicate: which facts speak for it, which against it, and how sure that is. Causes do not know each other. Evidence
// that several of them use is in the files evidence_*.go.
package cause

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/law"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
)

// Cause is an entry of the catalogue, made of a declaration in Go and the document beside it.
type Cause struct {
	ID string // stable: scripts match on it

	// Of the document; docs/causes.md and slowpath explain are made of it.

	Title string
	Layer string // server-host, server, persistence, limits, network, client-host, client
	// Needs says which evidence the cause is judged by, per tier.
	Needs Needs
	// Mechanism says how it makes calls slow, in sentences.
	Mechanism string
	// RuledOut is what a recording shows where it is not the cause.
	RuledOut string
	// LookAlikes are causes that look the same from afar, the most similar first.
	LookAlikes []LookAlike
	// Remedy is what ends it, in general. The Fix of a finding has the commands, with what the recording names.
	Remedy string
	// See has primary sources. A finding that names none of its own has these. Where findings choose among them, they
	// are in the declaration, and not in the document.
	See []string

	// Of the declaration.

	// Options are the topics of what client libraries offer against it.
	Options []remedy.Topic
	// Class groups causes with similar consequences; empty for none.
	Class Class
	// After names causes, and AfterClass classes of causes, that can produce this one as a mere consequence: where one
	// of them is found too, it comes first.
	After      []string
	AfterClass []Class
	// Changes are the names of changes (package changes) that can set the mechanism going, with * as in path.Match:
	// parameters of the server, commands, "cpu quota" and the like.
	Changes []string
	// Always: it is what every call takes all the time, so that it is no loss beside what calls take now and then.
	Always bool
	// Explain says what the recording shows of the cause on one node; nil for nothing. It must not use the findings of
	// other causes.
	Explain func(*facts.Node) *Finding
	// Whole, if set, adds what belongs to no single node (what applications wait for) to the finding of all nodes,
	// which is nil where there is none.
	Whole func(*facts.Case, *Finding) *Finding
}

// LookAlike is another cause that looks the same from afar.
type LookAlike struct {
	ID  string `json:"id"`
	How string `json:"how"` // they are told apart
}

// Class is a group of causes that can have another cause as a consequence.
type Class string

// ServerStall: the server does not serve for a while, or serves all callers late.
const ServerStall Class = "server-stall"

// Redial: callers open connections that they would not need.
const Redial Class = "redial"

// Roots are the ids of all causes that can produce this one: those of its classes, then those that it names.
func (c Cause) Roots() (ids []string) {
	for _, other := range Catalogue() {
		if other.ID != c.ID && slices.Contains(c.AfterClass, other.Class) {
			ids = append(ids, other.ID)
		}
	}
	return append(ids, c.After...)
}

// finding starts the finding of a cause from what it claims of slow calls.
func finding(n *facts.Node, cl facts.Claim) *Finding {
	f := &Finding{
		SlowCalls: cl.Calls, Of: n.Ledger.Calls(), Claims: []law.Claim{{Node: n, Calls: slices.Clone(cl.PerCall)}},
	}
	if cl.Eliminated {
		f.Grade = Eliminated
	}
	return f
}

// support adds evidence for the cause: a value with its unit, and a text with arguments as for fmt.Sprintf.
func (f *Finding) support(source string, value float64, unit, text string, args ...any) {
	f.Evidence = append(f.Evidence, Evidence{source, fmt.Sprintf(text, args...), value, unit})
}

// doubt adds evidence against it.
func (f *Finding) doubt(source string, value float64, unit, text string, args ...any) {
	f.Against = append(f.Against, Evidence{source, fmt.Sprintf(text, args...), value, unit})
}

// supportWaiting says how many slow calls waited for what is claimed.
func (f *Finding) supportWaiting(n *facts.Node, cl facts.Claim) {
	f.support(n.CallSource(), float64(cl.Calls), "calls", "%s waited for it, up to %s in one call",
		ofSlow(cl.Calls, n), format.Brief(cl.MaxNs))
}

// counted is a number of things: "1 connection", "2 connections". many is the plural of a thing that does not take an
// s.
func counted[N ~int | ~int64 | ~float64](n N, thing string, many ...string) string {
	whole := int64(math.RoundToEven(float64(n)))
	if len(many) > 0 && whole != 1 {
		return fmt.Sprintf("%d %s", whole, many[0])
	}
	return format.Count(whole, thing)
}

// ofSlow says of how many of the slow calls something is known: "3 of 1 200 slow calls".
func ofSlow(calls int, n *facts.Node) string {
	return format.Thousands(calls) + " of " + format.Count(n.Ledger.Calls(), "slow call")
}

// Needs is the evidence of a cause by tier: T0 a connection to the server, T1 the host's files, T2 the kernel.
type Needs struct{ T0, T1, T2 string }

// Shows reports whether a tier has evidence: its own, or that of one below it.
func (n Needs) Shows(tier string) bool {
	some := func(evidence string) bool { return evidence != "" && !strings.HasPrefix(evidence, "nothing") }
	switch tier {
	case "T2":
		return true
	case "T1":
		return some(n.T1) || some(n.T0)
	}
	return tier == "T0" && some(n.T0)
}
