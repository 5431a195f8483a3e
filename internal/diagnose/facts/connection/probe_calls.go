package connection

import (
	"slices"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
	"slowpath/internal/stats"
)

// CommandsPerFresh is how many commands the probe sends on a fresh connection: HELLO, CLIENT SETNAME, and the call.
// Bound: slowpath, what the probe sends.
const CommandsPerFresh = 3

// commandsPerPoll is about how many commands a poll of the server source sends.
// Bound: slowpath, what the server source sends.
const commandsPerPoll = 4

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

// Where the probe made no fresh or no kept calls: on any path a connection costs about one and a half commands.
const (
	assumedOpeningNs = int64(150_000) // Bound: guess.
	AssumedCallNs    = int64(100_000) // Bound: guess.
)

// ConnectionCost is what a connection and a command cost the probe, in the median. A connection that was opened while a
// call on an open one was slow, too, does not count: it waited for what that call waited for.
type ConnectionCost struct {
	// OpeningNs is the time in nanoseconds for a connection: the TCP connect, TLS, and what the first reply took longer
	// than one on an open connection, since the server had to accept the connection.
	OpeningNs int64
	// CallNs is the time in nanoseconds of a command on an open connection.
	CallNs int64
	// TLS says that the probe speaks TLS.
	TLS bool
}

// ConnectionCostOf is measured by the probe's calls on fresh and on kept connections; where one of them is missing,
// times of a fast path are assumed.
func ConnectionCostOf(n *facts.Node) ConnectionCost {
	kept, ok := n.Ledger.Path(n.Address, "kept")
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
	if len(openings) == 0 || !ok || kept.P50Ns <= 0 {
		return ConnectionCost{assumedOpeningNs, AssumedCallNs, tls}
	}
	slices.Sort(openings)
	return ConnectionCost{stats.MedianUpper(openings), kept.P50Ns, tls}
}
