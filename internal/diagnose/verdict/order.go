package verdict

import (
	"slices"
	"sort"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/facts"
)

// order puts findings by share times confidence, then every consequence behind its root cause. Findings of slow calls
// speak of the part of all the time of calls that their excess makes up, those that rest on a pattern of all calls (a
// queue, a connection per call) of the whole.
func order(fs []cause.Finding, slowness float64) []cause.Finding {
	weight := func(f cause.Finding) float64 {
		w := f.ExcessShare * f.Confidence
		if f.SlowCalls > 0 {
			w *= slowness
		}
		return w
	}
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
			if j, ok := found[root]; ok && !f.Independent && !slices.Contains(f.IndependentOf, root) {
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

// slowness is the part of all the time of callers that the excess of their slow calls makes up. What they wait for a
// name server is time of theirs, but of no call that a source sees.
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
