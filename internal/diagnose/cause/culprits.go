package cause

import (
	"cmp"
	"slices"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/format"
)

// Blame adds culprits, up to degree.Listed in all.
func (f *Finding) Blame(more ...caller.Culprit) {
	f.Culprits = caller.JoinCulprits(f.Culprits, more)
	f.Culprits = f.Culprits[:min(len(f.Culprits), degree.Listed)]
}

// blameLoads adds who makes the calls of a node, or those of some callers, those with most calls first.
func (f *Finding) blameLoads(n *facts.Node, callers ...*caller.Caller) {
	loads, all := caller.Loads(n, callers...), int64(0)
	for _, l := range loads {
		all += l.Calls
	}
	for _, l := range loads {
		if l.Calls > 0 && float64(l.Calls) >= degree.Part*float64(all) {
			f.Blame(l.Culprit(format.Percent(float64(l.Calls)/float64(all)) + " of the calls"))
		}
	}
}

// blameCommands adds who sent commands that hold the server, those with most of their time first.
func (f *Finding) blameCommands(n *facts.Node, ss []account.Suspect) {
	type sum struct {
		who      caller.Who
		ns       int64
		commands []string
	}
	by, all := map[string]*sum{}, int64(0)
	for _, s := range ss {
		ns := s.DurationNs * int64(max(s.Count, 1))
		all += ns
		if s.Command == "" || s.Client == "" && s.Process == "" {
			continue // that a client's last command was the same says little
		}
		w := caller.WhoSent(n, s)
		t := by[w.Key()]
		if t == nil {
			t = &sum{who: w}
			by[w.Key()] = t
		}
		if t.ns += ns; !slices.Contains(t.commands, s.Command) && len(t.commands) < degree.Listed {
			t.commands = append(t.commands, s.Command)
		}
	}
	var most []*sum
	for _, t := range by {
		if float64(t.ns) >= degree.Part*float64(all) {
			most = append(most, t)
		}
	}
	slices.SortFunc(most, func(a, b *sum) int {
		return cmp.Or(cmp.Compare(b.ns, a.ns), cmp.Compare(a.who.Key(), b.who.Key()))
	})
	for _, t := range most {
		f.Blame(t.who.Culprit(strings.Join(t.commands, ", ")))
	}
}
