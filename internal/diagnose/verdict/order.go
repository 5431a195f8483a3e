package verdict

import (
	"slices"
	"sort"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/facts"
)

// weight is share times strength.
func weight(f cause.Finding) float64 { return f.ExcessShare * f.Strength }

// claimWeight decides in which order findings take from the lost time. The share of a finding of slow calls is scaled
// by the part of all call time that their excess is; the share of a finding that rests on a pattern of all calls (a
// queue, a connection per call) is not. What is so all the time takes last.
func claimWeight(slowness float64) func(cause.Finding) float64 {
	return func(f cause.Finding) float64 {
		switch {
		case f.Steady:
			return 0
		case f.SlowCalls > 0:
			return weight(f) * slowness
		}
		return weight(f)
	}
}

// order sorts findings by weight, then puts every consequence behind its root cause.
func order(fs []cause.Finding, weight func(cause.Finding) float64) []cause.Finding {
	sort.SliceStable(fs, func(i, j int) bool {
		if fs[i].Leads != fs[j].Leads {
			return fs[i].Leads
		}
		return weight(fs[i]) > weight(fs[j])
	})
	found := map[string]int{}
	for i, f := range fs {
		found[f.Cause] = i
	}
	var out []cause.Finding
	placed := map[string]bool{}
	var place func(i int)
	place = func(i int) {
		f := fs[i]
		if placed[f.Cause] {
			return
		}
		placed[f.Cause] = true
		for _, root := range rootsOf(f.Cause) {
			if j, ok := found[root]; ok && mayFollow(f, root) {
				place(j)
				if f.Because == "" {
					f.Because = root
				}
			}
		}
		out = append(out, f)
	}
	for i := range fs {
		place(i)
	}
	if out == nil {
		return []cause.Finding{}
	}
	return out
}

// mayFollow reports whether the evidence leaves open that a finding is a consequence of one of its root causes.
func mayFollow(f cause.Finding, root string) bool {
	return !f.Independent && !slices.Contains(f.IndependentOf, root)
}

// slowness is the share of the excess of slow calls in all time of the callers. Their waits for DNS count as their
// time, but belong to no call that a source sees.
func slowness(c *facts.Case) float64 {
	var lookups int64
	for _, n := range c.Nodes {
		lookups += n.DNSQueryNs(n.Callers())
	}
	calls := float64(max(c.Ledger.Users.TotalNs, 1))
	return c.Ledger.Slowness() * calls / (calls + float64(lookups))
}

// rootsOf are the causes that come before one, where they are found too.
func rootsOf(id string) []string {
	for _, c := range cause.Catalogue() {
		if c.ID == id {
			return c.Roots()
		}
	}
	return nil
}
