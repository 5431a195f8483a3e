package hosts

import (
	"slices"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// ServerSilence is what a packet capture shows of time that slow calls spent at the server, for a reason that packets
// do not show: the process did not run, or did something else.
type ServerSilence struct {
	facts.Claim
	// Acknowledged is the number of slow calls whose request the server's kernel acknowledged before there was a reply:
	// it had arrived, and the process did not answer. Of these Delayed were acknowledged when the kernel's timer for
	// delayed acknowledgements expired, so that the kernel was running then.
	Acknowledged, Delayed int
	// AckNs is the median time from a request to such a delayed acknowledgement, in nanoseconds.
	AckNs int64
	// Behind is the number of slow calls during which one of another command was under way that may take long.
	Behind int
	// Commands are those, by how many calls waited meanwhile.
	Commands facts.NameCounts
}

// ServerSilenceOf adds up that time of the node's slow calls.
func ServerSilenceOf(n *facts.Node) ServerSilence {
	s := ServerSilence{Commands: facts.NameCounts{}}
	long := longCommands(n)
	s.Claim = n.TapClaim(func(a account.Account) (times facts.StateTimes) {
		var at []account.Segment
		for _, p := range a.Segments {
			if p.Actor == account.Server && p.State == account.Unexplained {
				times.Add(p, p.Ns())
				at = append(at, p)
			}
		}
		if op := behind(a, at, long); op != "" {
			s.Behind++
			s.Commands[op]++
		}
		return times
	})
	var delays []int64
	for _, e := range n.Events(recording.SourceTap, recording.KindRequestAck) {
		s.Acknowledged++
		if recording.DetailOf[recording.RequestAckDetail](e).Delayed {
			delays = append(delays, e.DurationNs)
		}
	}
	slices.Sort(delays)
	if s.Delayed = len(delays); s.Delayed > 0 {
		s.AckNs = delays[s.Delayed/2]
	}
	return s
}

// longCommands are the slow calls of commands that may take long.
func longCommands(n *facts.Node) (out []account.Account) {
	for _, a := range n.Ledger.Slow {
		if a.Call.Node == n.Address && !account.ConstantTime(a.Call.Op) {
			out = append(out, a)
		}
	}
	return out
}

// behind is the command of a call on another connection that was under way for most of these parts of a call; empty:
// there was none.
func behind(a account.Account, parts []account.Segment, long []account.Account) string {
	for _, o := range long {
		if o.Call.ID == a.Call.ID || o.Call.Conn == a.Call.Conn {
			continue
		}
		var both, all int64
		for _, p := range parts {
			all += p.Ns()
			both += max(min(p.ToNs, o.Call.EndNs)-max(p.FromNs, o.Call.IntendedNs), 0)
		}
		if all > 0 && 2*both > all {
			return o.Call.Op
		}
	}
	return ""
}
