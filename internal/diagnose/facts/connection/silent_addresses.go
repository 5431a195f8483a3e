package connection

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/recording/series"
)

// SilentAddress is an address at the port of a server that a process dials again and again, without an answer, as its
// sockets show.
type SilentAddress struct {
	PID   int
	To    string
	Dials int
	Ns    int64   // how long they took together, in nanoseconds
	MaxNs int64   // the longest of them
	Share float64 // of the time of the threads of the process that call or dial
	Calls bool    // the process was seen to have connections to a watched server
}

// SilentAddresses are those at the port of this node, or of the first one with that port, that cost most first. Where
// the tap saw the dials there are none.
func SilentAddresses(n *facts.Node) (out []SilentAddress) {
	if n.Rec.Used(recording.SourceTap) {
		return nil
	}
	type key struct {
		pid int
		to  string
	}
	sums := map[key]*SilentAddress{}
	for _, e := range n.Rec.Events {
		text, ok := strings.CutPrefix(e.Subject, recording.ProcessPrefix)
		pid, err := strconv.Atoi(text)
		if e.Kind != recording.KindUnansweredDial || !ok || err != nil {
			continue
		}
		d := recording.DetailOf[recording.UnansweredDial](e)
		if firstAtPortOf(n.Case, d.To) != n {
			continue
		}
		s := sums[key{pid, d.To}]
		if s == nil {
			s = &SilentAddress{PID: pid, To: d.To}
			sums[key{pid, d.To}] = s
		}
		s.Calls = s.Calls || d.Calls
		s.Dials, s.Ns, s.MaxNs = s.Dials+1, s.Ns+e.DurationNs, max(s.MaxNs, e.DurationNs)
	}
	opened := n.Growth(series.TotalConnectionsReceived) - ProbeCallsOf(n, n.StartNs, n.EndNs).Fresh
	for _, s := range sums {
		threads := int64(0)
		for _, of := range n.Rec.Snapshots {
			if of.Name == recording.SnapshotWaits && of.Subject == recording.ProcessPrefix+strconv.Itoa(s.PID) {
				threads = int64(recording.ThreadWaitsOf(of.Body).Threads)
			}
		}
		if all := threads * (n.EndNs - n.StartNs); all > 0 {
			s.Share = float64(s.Ns) / float64(all)
		}
		// One thread of many that looks after an address which is gone keeps no call waiting. Where no connection of
		// the process to the server was seen, it may call another server at the same port.
		if s.Dials >= degree.Several && s.Share >= degree.Part && (s.Calls || opened >= degree.Most*float64(s.Dials)) {
			out = append(out, *s)
		}
	}
	slices.SortFunc(out, func(a, b SilentAddress) int {
		return cmp.Or(cmp.Compare(b.Ns, a.Ns), cmp.Compare(a.PID, b.PID), cmp.Compare(a.To, b.To))
	})
	return out
}

// firstAtPortOf is the first node at the port of an address; nil where there is none.
func firstAtPortOf(c *facts.Case, address string) *facts.Node {
	to, err := netip.ParseAddrPort(address)
	for _, n := range c.Nodes {
		if at, bad := netip.ParseAddrPort(n.Address); err == nil && bad == nil && at.Port() == to.Port() {
			return n
		}
	}
	return nil
}
