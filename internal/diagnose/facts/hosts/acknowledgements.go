package hosts

import (
	"maps"
	"slices"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// Acknowledgements is what the tap saw of replies to clients at other addresses, of which it may see the
// server's end alone. The clients' kernels acknowledge them without their processes: what is late is the path, the
// client's host, or a window that is closed.
type Acknowledgements struct {
	// Retransmitted is the number of late acknowledgements during which segments were retransmitted.
	Retransmitted int
	// Other is the number of late acknowledgements with neither.
	Other int
	// MaxRetransmittedNs is the longest of Retransmitted, in nanoseconds.
	MaxRetransmittedNs int64
	// MaxOtherNs is the longest of Other, in nanoseconds.
	MaxOtherNs int64
	// Conns is the number of connections whose round trip is known.
	Conns int
	// MinRTTNs is the median over the connections of their shortest round trip; 0 where it is unknown.
	MinRTTNs int64
	// LateConns are the addresses of clients with late acknowledgements.
	LateConns map[string]bool
	// ClosedWindowConns are the addresses of clients that closed their window, late or not.
	ClosedWindowConns map[string]bool
	// OtherBytes is how many bytes were not acknowledged in the longest of Other.
	OtherBytes int64
	// OtherClient is the address of the client of the longest of Other.
	OtherClient string
}

// AcknowledgementsOf are those of the node's replies.
func AcknowledgementsOf(n *facts.Node) Acknowledgements {
	a := Acknowledgements{LateConns: map[string]bool{}, ClosedWindowConns: map[string]bool{}}
	least := map[string]int64{}
	for _, e := range n.Events(recording.SourceTap, recording.KindAcknowledged) {
		d := recording.DetailOf[recording.AckDetail](e)
		if d.RTTMinNs > 0 {
			least[d.Client] = d.RTTMinNs
		}
		if d.WindowClosed {
			a.ClosedWindowConns[d.Client] = true
		}
		if d.MinWaitNs < d.RTTMinNs+n.Ledger.ThresholdNs {
			continue
		}
		a.LateConns[d.Client] = true
		switch {
		case d.WindowClosed:
			// what is retransmitted into a closed window is a probe of it
		case d.Retransmitted > 0:
			a.Retransmitted++
			a.MaxRetransmittedNs = max(a.MaxRetransmittedNs, d.MinWaitNs)
		default:
			a.Other++
			if d.MinWaitNs > a.MaxOtherNs {
				a.MaxOtherNs, a.OtherBytes, a.OtherClient = d.MinWaitNs, d.Unacked, d.Client
			}
		}
	}
	all := slices.Sorted(maps.Values(least))
	if a.Conns = len(all); a.Conns > 0 {
		a.MinRTTNs = all[a.Conns/2]
	}
	return a
}
