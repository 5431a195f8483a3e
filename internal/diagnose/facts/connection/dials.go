package connection

import (
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// SYNTimeoutNs is the time in nanoseconds after which the kernel retransmits a SYN that had no answer
// (TCP_TIMEOUT_INIT).
// Bound: kernel, TCP_TIMEOUT_INIT.
const SYNTimeoutNs = 1e9

// Dials are the connections that the tap saw the clients of this host make to a node.
type Dials struct {
	// Count is the number of connections.
	Count int
	// Late is the number of those that took a second or longer, so that their SYN was retransmitted.
	Late int
	// LateNs is the duration of all of Late in nanoseconds, MaxLateNs that of the longest.
	LateNs, MaxLateNs int64
	// LateByProgram is the number of Late by the name of the program.
	LateByProgram map[string]int64
}

// sentAgain reports whether a dial took so long that its SYN was retransmitted. The tap begins to count after it was
// sent.
func sentAgain(dialNs int64) bool { return float64(dialNs) >= degree.NearlyAll*SYNTimeoutNs }

// DialsOf are the connections that clients of this host made to the node during the watch.
func DialsOf(n *facts.Node) Dials { return facts.Once(n, "dials", findDials) }

func findDials(n *facts.Node) Dials {
	dials := Dials{LateByProgram: map[string]int64{}}
	for e := range n.Rec.Conns(n.Address, recording.KindOpen) {
		if e.Side != recording.Client || e.DialNs <= 0 {
			continue
		}
		dials.Count++
		if sentAgain(e.DialNs) {
			dials.Late++
			dials.LateNs += e.DialNs
			dials.MaxLateNs = max(dials.MaxLateNs, e.DialNs)
			dials.LateByProgram[e.Comm]++
		}
	}
	return dials
}
