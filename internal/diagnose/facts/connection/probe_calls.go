package connection

import (
	"cmp"
	"slices"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/stats"
)

// CommandsPerFresh is how many commands the probe sends on a fresh connection: HELLO, CLIENT SETNAME, and the call.
// Bound: slowpath, what the probe sends.
const CommandsPerFresh = 3

// ProbeCalls are how many calls the probe made in a stretch of time.
type ProbeCalls struct {
	// Fresh is the number of calls on fresh connections, each of which the server counts as a connection.
	Fresh float64
	// Kept is the number of calls on the connection that the probe keeps.
	Kept float64
}

// ProbeCallsOf are the probe's calls to the node that began in [fromNs, toNs).
func ProbeCallsOf(n *facts.Node, fromNs, toNs int64) (p ProbeCalls) {
	for _, c := range n.Rec.Calls {
		if c.Source != recording.SourceProbe || c.Node != n.Address || c.StartNs < fromNs || c.StartNs >= toNs {
			continue
		}
		if c.Conn == "fresh" {
			p.Fresh++
		} else {
			p.Kept++
		}
	}
	return p
}

// OwnCommandsPerSecond is how many commands per second are the probe's, those of its handshakes included.
func OwnCommandsPerSecond(n *facts.Node) float64 {
	kept, _ := n.Ledger.Path(n.Address, "kept")
	fresh, _ := n.Ledger.Path(n.Address, "fresh")
	return (float64(kept.Calls) + CommandsPerFresh*float64(fresh.Calls)) / n.Seconds()
}

// ConnectionCost is what a connection and a command cost the probe, in the median. A connection that was opened while a
// call on an open one was slow, too, does not count: it waited for what that call waited for.
type ConnectionCost struct {
	// OpeningNs is the time in nanoseconds for a connection: the TCP connect, TLS, and what the first reply took longer
	// than one on an open connection, since the server had to accept the connection.
	// A round trip where the probe opened none.
	OpeningNs int64
	// CallNs is the time in nanoseconds of a command on an open connection: the median of the probe's, or the mean of
	// all calls.
	CallNs int64
	// TLS says that the probe speaks TLS.
	TLS bool
}

// ConnectionCostOf is measured by the probe's calls on fresh and on kept connections.
func ConnectionCostOf(n *facts.Node) ConnectionCost {
	kept, _ := n.Ledger.Path(n.Address, "kept")
	var openings []int64
	tls := false
	var stalls, fresh []recording.Call
	for _, c := range n.Rec.Calls {
		switch {
		case c.Source != recording.SourceProbe || c.Node != n.Address || c.Error != "":
		case c.Conn == "fresh":
			fresh = append(fresh, c)
		case c.EndNs-c.IntendedNs >= n.Ledger.ThresholdNs:
			stalls = append(stalls, c)
		}
	}
	for _, c := range fresh {
		if slices.ContainsFunc(stalls, func(s recording.Call) bool {
			return s.IntendedNs < c.EndNs && c.IntendedNs < s.EndNs
		}) {
			continue
		}
		var ns int64
		for _, s := range n.Rec.SegmentsOf(c.ID) {
			switch s.State {
			case account.Dial:
				ns += s.ToNs - s.FromNs
			case account.TLS:
				ns += s.ToNs - s.FromNs
				tls = true
			case account.Handshake:
				ns += max(0, s.ToNs-s.FromNs-kept.P50Ns)
			}
		}
		openings = append(openings, ns)
	}
	callNs := cmp.Or(kept.P50Ns, n.MeanCallNs(), 1) // a connection costs as much at least
	if len(openings) == 0 {
		return ConnectionCost{callNs, callNs, tls}
	}
	slices.Sort(openings)
	return ConnectionCost{stats.MedianUpper(openings), callNs, tls}
}
