package verdict

import (
	"strings"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/changes"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// blame adds to each finding who sent the commands that set its mechanism going, and says in the steps of its fix whose
// program it is that has to change.
func blame(c *facts.Case, found []cause.Finding) {
	for i := range found {
		f := &found[i]
		for _, change := range f.Changes {
			if change.ByMechanism {
				f.Blame(sentBy(c, change)...)
			}
		}
		if len(f.Culprits) == 0 && strings.HasPrefix(f.Layer, "client") {
			f.Blame(madeBy(c, *f)...)
		}
		if len(f.Culprits) == 0 {
			continue
		}
		for k, s := range f.FixSteps {
			if s.Kind == remedy.Change && s.Restart == "the application" && s.Where == "" {
				f.FixSteps[k].Where = caller.HostText(f.Culprits[0].Process, f.Culprits[0].HostName)
			}
		}
	}
}

// madeBy is who made the slow calls that a finding claims, those who lost most first: what is wrong at a client is its
// own.
func madeBy(c *facts.Case, f cause.Finding) []caller.Culprit {
	var t caller.Tally
	for _, cl := range f.Claims {
		for _, call := range cl.Calls {
			if a := c.Ledger.Slow[call.Index]; cl.Node != nil && a.Call.Source == recording.SourceTap {
				t.Add(caller.WhoOf(cl.Node, a.Call.Conn, a.Call.Client, a.Call.StartNs), call.Ns)
			}
		}
	}
	return t.Culprits(func(p caller.Part) string { return format.Count(p.Count, "slow call") })
}

// sentBy is who sent the commands of a change: a setting when it was changed, another command each time.
func sentBy(c *facts.Case, change changes.Cited) (out []caller.Culprit) {
	for _, n := range c.Nodes {
		if change.Node != "" && change.Node != n.Address {
			continue
		}
		whos, times := map[string]caller.Who{}, map[string]int{}
		var order []string
		at := change.Time.UnixNano()
		for _, a := range caller.AdminCommands(n) {
			if !strings.HasPrefix(change.Text, a.Command) || change.Kind == changes.Setting &&
				(a.ToNs < at || a.FromNs > at+change.WithinNs) || !a.Who.Known() {
				continue
			}
			key := a.Who.Key()
			if times[key]++; times[key] == 1 {
				whos[key], order = a.Who, append(order, key)
			}
		}
		for _, key := range order {
			what := change.Text
			if change.Kind != changes.Setting {
				what, _, _ = strings.Cut(what, ",")
				if times[key] > 1 {
					what += ", " + format.Thousands(times[key]) + " times"
				}
			}
			out = append(out, whos[key].Culprit(what))
		}
	}
	return out
}
