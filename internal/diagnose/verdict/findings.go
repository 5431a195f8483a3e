package verdict

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
)

// onNode is the finding of a cause on one node.
type onNode struct {
	address string
	*cause.Finding
}

// explain asks every cause about every node, and joins what it says of several nodes into one finding.
func explain(c *facts.Case, step func(nth, of int)) []cause.Finding {
	out := []cause.Finding{}
	unseen := unseenOf(c.Rec)
	all := cause.Catalogue()
	for i, why := range all {
		step(i+1, len(all))
		var found []onNode
		for _, n := range c.Nodes {
			if f := why.Explain(n); f != nil {
				found = append(found, onNode{n.Address, f})
			}
		}
		f := join(found, len(c.Nodes) > 1)
		if why.Whole != nil {
			f = why.Whole(c, f)
		}
		if f == nil {
			continue
		}
		f.SlowCalls = min(f.SlowCalls, c.Ledger.Calls()) // the same calls, at several hops
		f.Missed = missedOf(f, unseen)
		if f.Missed > degree.Most {
			continue
		}
		f.Cause, f.Layer = why.ID, why.Layer
		if f.Title == "" {
			f.Title = why.Title
		}
		if len(f.Nodes) > 0 && !slices.ContainsFunc(f.Nodes, func(n string) bool { return !c.Ledger.IsProxy(n) }) {
			f.Title = strings.NewReplacer("server", "proxy", "Server", "Proxy").Replace(f.Title)
		}
		if len(f.See) == 0 {
			f.See = slices.Clone(why.See)
		}
		out = append(out, fill(*f))
	}
	return out
}

// join makes one finding of those on several nodes, nil of none. The evidence and the fix are those of the nodes with
// the largest shares. several is whether the recording has more than one node, so that evidence needs an address.
func join(found []onNode, several bool) *cause.Finding {
	if len(found) == 0 {
		return nil
	}
	shown := mostAffected(found)
	all := *shown[0].Finding
	all.SlowCalls, all.Samples = 0, 0
	all.Evidence, all.Against, all.FixSteps, all.See, all.Claims, all.Culprits = nil, nil, nil, nil, nil, nil
	for _, f := range found {
		all.SlowCalls += f.SlowCalls
		all.Samples += f.Samples
		all.Claims = append(all.Claims, f.Claims...)
		all.Doubts = min(all.Doubts, f.Doubts)
		all.IndependentOf = slices.DeleteFunc(slices.Clone(all.IndependentOf),
			func(root string) bool { return !slices.Contains(f.IndependentOf, root) })
	}
	for _, f := range shown {
		if several {
			all.Nodes = append(all.Nodes, f.address)
		}
		for _, e := range f.Evidence {
			if several {
				e.Text = f.address + ": " + e.Text
			}
			all.Evidence = append(all.Evidence, e)
		}
		all.Against = append(all.Against, f.Against...)
		all.Culprits = caller.JoinCulprits(all.Culprits, f.Culprits)
		all.FixSteps = remedy.Join(all.FixSteps, f.FixSteps)
		all.See = appendNew(all.See, f.See)
	}
	more := len(found) - len(shown)
	if several {
		all.MoreNodes = more
	}
	if more > 0 && len(all.Evidence) > 0 {
		all.Evidence = append(all.Evidence, cause.Evidence{
			Source: all.Evidence[0].Source, Value: float64(more), Unit: "nodes",
			Text: fmt.Sprintf("the same on %d more of the %d nodes where it was found", more, len(found)),
		})
		all.FixSteps = append(all.FixSteps, remedy.Step{
			ID: "more-nodes", Kind: remedy.Change, Text: "The same on " + format.Count(more, "more node"),
		})
	}
	return &all
}

// mostAffected are the nodes with reported evidence, in the order in which they were watched.
func mostAffected(found []onNode) []onNode {
	if len(found) <= degree.Listed {
		return found
	}
	shares := make([]float64, len(found))
	for i, f := range found {
		shares[i] = f.claimedNs()
	}
	slices.SortFunc(shares, func(a, b float64) int { return cmp.Compare(b, a) })
	var shown []onNode
	for _, f := range found {
		if len(shown) < degree.Listed && f.claimedNs() >= shares[degree.Listed-1] {
			shown = append(shown, f)
		}
	}
	return shown
}

// claimedNs is what the finding claims, in nanoseconds.
func (f onNode) claimedNs() (ns float64) {
	for _, cl := range f.Claims {
		for _, call := range cl.Calls {
			ns += call.Ns
		}
		for _, loss := range cl.Losses {
			ns += loss.Ns
		}
	}
	return ns
}

// appendNew adds the lines that are not there yet.
func appendNew(lines, more []string) []string {
	for _, l := range more {
		if !slices.Contains(lines, l) {
			lines = append(lines, l)
		}
	}
	return lines
}

// fill makes absent lists empty lists: JSON readers get [], not null.
func fill(f cause.Finding) cause.Finding {
	if f.Nodes == nil {
		f.Nodes = []string{}
	}
	if f.Evidence == nil {
		f.Evidence = []cause.Evidence{}
	}
	if f.Against == nil {
		f.Against = []cause.Evidence{}
	}
	if f.See == nil {
		f.See = []string{}
	}
	return f
}
