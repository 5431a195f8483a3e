package cause

import (
	"slices"
	"strings"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// Blame adds culprits, up to degree.Listed in all.
func (f *Finding) Blame(more ...caller.Culprit) {
	f.Culprits = caller.JoinCulprits(f.Culprits, more)
	f.Culprits = f.Culprits[:min(len(f.Culprits), degree.Listed)]
}

// blameLoads adds who makes the calls of a node, or those of some callers, those with most calls first.
func (f *Finding) blameLoads(n *facts.Node, callers ...*caller.Caller) {
	t := caller.TallyOf(n, (*caller.Conn).AppCalls, callers...)
	f.Blame(t.Culprits(func(p caller.Part) string { return format.Percent(p.Share) + " of the calls" })...)
}

// blameOpenings adds who opens most connections.
func (f *Finding) blameOpenings(n *facts.Node) {
	t := caller.TallyOf(n, func(k *caller.Conn) int64 {
		if k.OpenNs > n.StartNs {
			return 1
		}
		return 0
	})
	f.Blame(t.Culprits(func(p caller.Part) string { return format.Percent(p.Share) + " of the new connections" })...)
}

// blameCalls adds whose calls weigh most, of those that were recorded one by one; what is that of which they have a
// share. requestBytes and replyBytes are such weights.
func (f *Finding) blameCalls(n *facts.Node, what string, weigh func(recording.Call) int64) {
	var t caller.Tally
	for _, c := range n.Rec.Calls {
		if weight := weigh(c); c.Source == recording.SourceTap && c.Node == n.Address && weight > 0 {
			t.Add(caller.WhoOf(n, c.Conn, c.Client, c.StartNs), float64(weight))
		}
	}
	f.Blame(t.Culprits(func(p caller.Part) string { return format.Percent(p.Share) + " of " + what })...)
}

func requestBytes(c recording.Call) int64 { return c.RequestBytes }

func replyBytes(c recording.Call) int64 { return c.ReplyBytes }

// blameCommands adds who sent commands that hold the server, those with most of their time first.
func (f *Finding) blameCommands(n *facts.Node, ss []account.Suspect) {
	var t caller.Tally
	commands := map[string][]string{}
	for _, s := range ss {
		ns := float64(s.DurationNs * int64(max(s.Count, 1)))
		if s.Command == "" || s.Client == "" && s.Process == "" {
			t.Others += ns // that a client's last command was the same says little
			continue
		}
		w := caller.WhoSent(n, s)
		t.Add(w, ns)
		if of := commands[w.Key()]; !slices.Contains(of, s.Command) && len(of) < degree.Listed {
			commands[w.Key()] = append(of, s.Command)
		}
	}
	f.Blame(t.Culprits(func(p caller.Part) string { return strings.Join(commands[p.Key()], ", ") })...)
}
