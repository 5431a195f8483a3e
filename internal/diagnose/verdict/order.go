package verdict

import (
	"cmp"
	"slices"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/law"
)

// finding is a finding with its place among the claimants of the lost time.
type finding struct {
	cause.Finding
	claimant int
	got      float64 // of the lost time, in nanoseconds
	inCalls  float64 // of that, in slow calls
	late     law.Late
	with     []int // the claimants whose time it has: itself, and consequences that are too small to be reported
}

// share gives each finding its share of the lost time, and links consequences to their root causes: a root cause has
// also what its consequences got. They are in the order of their shares, consequences behind their root causes.
func share(c *facts.Case, all []cause.Finding) (law.Shares, []finding) {
	claimants := make([]law.Claimant, len(all))
	for i, f := range all {
		claimants[i] = law.Claimant{ID: f.Cause, Grade: f.Grade, Claims: f.Claims, After: rootsOf(f)}
	}
	lost := law.Of(c)
	shares := lost.Share(claimants)
	if i := slices.IndexFunc(all, func(f cause.Finding) bool { return causeOf(f.Cause).Always }); i >= 0 &&
		shares.Ns-shares.Got(i) >= facts.MinShare*shares.Ns {
		claimants[i].Claims = nil // what calls take all the time is no loss beside what they take now and then
		shares = lost.Share(claimants)
	}
	fs := make([]finding, len(all))
	for i, f := range all {
		fs[i] = finding{Finding: f, claimant: i, got: shares.Got(i), late: shares.Late[i], with: []int{i}}
		for column, ns := range shares.Cells[i] {
			if column.Kind == "" {
				fs[i].inCalls += ns
			}
		}
	}
	link(fs, facts.MinShare*shares.Ns)
	for i := range fs {
		f := &fs[i]
		f.ExcessShare = min(1, withConsequences(fs, f.Cause)/max(shares.Ns, 1))
		f.ClaimedShare = max(min(1, shares.Alone[i]/max(shares.Ns, 1)), f.ExcessShare)
	}
	return shares, inOrder(fs)
}

// link makes each finding the consequence of that of its root causes which explains most, if any. One that is a root
// cause as all of its class are explains least nanoseconds itself: that a server was held up for a moment says nothing.
func link(fs []finding, least float64) {
	for i := range fs {
		f, most := &fs[i], -1.0
		f.Because = ""
		for _, root := range fs {
			named := slices.Contains(causeOf(f.Cause).After, root.Cause)
			if slices.Contains(rootsOf(f.Finding), root.Cause) && root.got > most && (named || root.got >= least) &&
				!follows(fs, root.Cause, f.Cause) {
				f.Because, most = root.Cause, root.got
			}
		}
	}
}

// follows reports whether a finding is a consequence of another one, directly or through others.
func follows(fs []finding, id, root string) bool {
	for range fs { // a chain has no more steps
		i := slices.IndexFunc(fs, func(f finding) bool { return f.Cause == id })
		if i < 0 || fs[i].Because == "" {
			return false
		}
		if id = fs[i].Because; id == root {
			return true
		}
	}
	return false
}

// withConsequences is what a finding and its consequences got, in nanoseconds: without it callers would not have lost
// that time either.
func withConsequences(fs []finding, id string) (ns float64) {
	for _, f := range fs {
		switch {
		case f.Cause == id:
			ns += f.got
		case f.Because == id:
			ns += withConsequences(fs, f.Cause)
		}
	}
	return ns
}

// inOrder are findings by their shares, consequences behind their root causes.
func inOrder(fs []finding) (out []finding) {
	slices.SortStableFunc(fs, func(a, b finding) int { return cmp.Compare(b.ExcessShare, a.ExcessShare) })
	var place func(because string)
	place = func(because string) {
		for _, f := range fs {
			if f.Because == because {
				out = append(out, f)
				place(f.Cause)
			}
		}
	}
	place("")
	return out
}

// rootsOf are the causes of which, by the evidence, a finding can be a consequence.
func rootsOf(f cause.Finding) []string {
	return slices.DeleteFunc(causeOf(f.Cause).Roots(), func(root string) bool {
		return slices.Contains(f.IndependentOf, root)
	})
}

// causeOf is the cause with an id.
func causeOf(id string) cause.Cause {
	all := cause.Catalogue()
	return all[slices.IndexFunc(all, func(c cause.Cause) bool { return c.ID == id })]
}

// noticedAlone reports whether somebody would notice a finding if nothing else made calls slow: it makes more calls
// late than a healthy system has, or one for very long, and has more of the lost time than such a system has slow
// calls.
func noticedAlone(c *facts.Case, f finding) bool {
	users, others := c.Ledger.Users, c.Ledger.Probe
	users.Slow, others.Slow = int(users.OfAll(f.late.Users)), f.late.Others
	return f.ExcessShare > facts.HealthyMaxShare && (f.late.MaxNs >= float64(facts.HealthyMaxNs) ||
		!users.Few(facts.HealthyMaxShare) || !others.Few(facts.HealthyMaxShare))
}

// reported are the findings that explain a tenth of the lost time, or that somebody would notice alone, with those
// consequences of theirs that would explain a tenth alone.
func reported(c *facts.Case, fs []finding) (out []finding) {
	slowCalls := slowCallsNoticed(c)
	var noticed func(f finding) bool
	noticed = func(f finding) bool {
		return f.inCalls > 0 && slowCalls || f.got > f.inCalls || slices.ContainsFunc(fs,
			func(of finding) bool { return of.Because == f.Cause && noticed(of) })
	}
	for _, f := range fs {
		root := slices.IndexFunc(out, func(root finding) bool { return root.Cause == f.Because })
		switch {
		case root >= 0 && f.ClaimedShare < facts.MinShare:
			out[root].with = append(out[root].with, f.with...)
		case root < 0 && !noticedAlone(c, f) && (f.ExcessShare < facts.MinShare || !noticed(f)):
		default:
			if root < 0 {
				f.Because = ""
			}
			out = append(out, f)
		}
	}
	return out
}
