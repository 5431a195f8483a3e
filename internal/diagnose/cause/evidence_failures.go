package cause

import (
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/facts/mainthread"
	"slowpath/internal/diagnose/facts/nodes"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// Evidence of calls that failed, and of a server's process that ended.

// sinceStart is a time of the watch for people.
func sinceStart(n *facts.Node, ns int64) string {
	return format.Duration(max(ns-n.StartNs, 0)) + " after the watch began"
}

func (f *Finding) supportOwnFailures(n *facts.Node) {
	if own := nodes.OwnFailuresOf(n.Case); own.Failed > 0 {
		f.support(recording.SourceProbe, float64(own.Failed), "calls",
			"%d of slowpath's own %s failed or had no reply", own.Failed, counted(own.Calls, "call"))
	}
}

// supportLostCalls says what became of the clients' calls.
func (f *Finding) supportLostCalls(n *facts.Node, w facts.Span) {
	lost := nodes.LostCallsOf(n, facts.Span{FromNs: w.FromNs - int64(degree.AtOnce), ToNs: w.ToNs})
	if lost.Conns > 0 {
		f.support(recording.SourceTap, float64(lost.Calls), "calls",
			"%s of clients got no reply: the server's end closed their %s", counted(lost.Calls, "call"),
			counted(lost.Conns, "connection"))
	}
	if lost.RefusedDials > 0 {
		f.support(recording.SourceTap, float64(lost.RefusedDials), "connections",
			"%s of clients could not be made, most of %s", counted(lost.RefusedDials, "connection"),
			lost.Callers.List(degree.Listed))
	}
}

// supportProcessEnd says what the host shows of the server's process.
func (f *Finding) supportProcessEnd(n *facts.Node) {
	ended := n.Events(recording.SourceHost, recording.KindProcessEnded)
	for _, e := range ended {
		d := recording.DetailOf[recording.ServerProcess](e)
		f.support(recording.SourceHost, float64(d.PID), "pid", "its process %s[%d] ended %s", d.Comm, d.PID,
			sinceStart(n, e.TimeNs))
	}
	if killed := nodes.OOMKills(n); killed > 0 {
		f.support(recording.SourceHost, killed, "processes",
			"its cgroup reached its memory limit, and the kernel killed %s in it (memory.events oom_kill)",
			counted(killed, "process", "processes"))
	}
	if len(ended) == 0 && !mainthread.HostWatched(n) {
		f.doubt(recording.SourceHost, 0, "", "why was not seen: the host of the server was not watched")
	}
}

// supportRefusedUsers names the callers whose calls got an error, where those were seen, else all callers.
func (f *Finding) supportRefusedUsers(n *facts.Node) {
	who := facts.NameCounts{}
	for _, c := range n.Rec.Calls {
		if c.Node == n.Address && c.Source == recording.SourceTap && c.Error != "" && c.Client != "" {
			who[c.Client]++
		}
	}
	if len(who) == 0 {
		for _, c := range caller.ClientCallers(n) {
			if c.AppCalls() > 0 {
				who[c.Name] += int(c.AppCalls())
			}
		}
	}
	if len(who) > 0 {
		f.support(recording.SourceTap, float64(len(who)), "callers", "its callers: %s", who.List(degree.Listed))
	}
}
