package verdict

import (
	"fmt"

	"slowpath/internal/diagnose/cause"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/hosts"
	"slowpath/internal/format"
	"slowpath/internal/recording"
)

// capturedSilence says of slow calls in a packet capture that they waited for the server for most of their excess, and
// how that is known. Packets do not show why its process did not answer.
func capturedSilence(c *facts.Case) string {
	var all hosts.ServerSilence
	all.Commands = facts.NameCounts{}
	var ackNs int64
	for _, n := range c.Nodes {
		s := hosts.ServerSilenceOf(n)
		all.Ns, all.Calls = all.Ns+s.Ns, all.Calls+s.Calls
		all.Acknowledged, all.Delayed, all.Behind = all.Acknowledged+s.Acknowledged, all.Delayed+s.Delayed,
			all.Behind+s.Behind
		ackNs = max(ackNs, s.AckNs)
		for name, k := range s.Commands {
			all.Commands[name] += k
		}
	}
	share := float64(all.Ns) / float64(max(c.Ledger.ExcessNs, 1))
	if !c.Rec.Used(recording.SourceCapture) || 2*all.Ns < c.Ledger.ExcessNs || all.Ns == 0 {
		return ""
	}
	text := fmt.Sprintf(" %s of that time passed at the server.", format.Percent(min(share, 1)))
	if all.Delayed > 0 {
		text += fmt.Sprintf(" Its kernel acknowledged %s after %s (a delayed ACK), before there was a reply: "+
			"they had arrived, and its process did not answer. It did not run, or did something else.",
			format.Count(all.Delayed, "request"), format.Brief(ackNs))
	}
	if all.Behind > 0 {
		text += fmt.Sprintf(" During %s another command was under way: %s.", format.Count(all.Behind, "slow call"),
			all.Commands.List(3))
	}
	return text + " Run slowpath doctor on its host."
}

// capturedFloor says of a packet capture that every call to a node takes long, and what is not known of that.
func capturedFloor(c *facts.Case) string {
	for _, n := range c.Nodes {
		p, ok := cause.CapturedFloor(n)
		if !ok {
			continue
		}
		text := fmt.Sprintf("Inconclusive: each of %s to %s took %s or longer (median %s).",
			format.Count(int(p.Calls), "call"), n.Address, format.Brief(p.MinNs), format.Brief(p.P50Ns))
		if p.ConnectMinNs == 0 {
			return text + " Whether that is the distance or the server is not in this capture: a capture in which " +
				"the clients open connections shows how long the path alone takes."
		}
		return text + fmt.Sprintf(" It is not the distance: a SYN has its answer after %s. The server, or a proxy "+
			"that answers for it, takes the time: run slowpath doctor on its host.", format.Brief(p.ConnectMinNs))
	}
	return ""
}

// relabel names the capture as the source of what the diagnosis knows as the tap's: both see the same of calls and
// connections.
func relabel(d *Diagnosis) {
	name := func(list []cause.Evidence) {
		for i := range list {
			if list[i].Source == recording.SourceTap {
				list[i].Source = recording.SourceCapture
			}
		}
	}
	for i := range d.Findings {
		name(d.Findings[i].Evidence)
		name(d.Findings[i].Against)
	}
	for i := range d.Worst {
		if d.Worst[i].Source == recording.SourceTap {
			d.Worst[i].Source = recording.SourceCapture
		}
	}
}
