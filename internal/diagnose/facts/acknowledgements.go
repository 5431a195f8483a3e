package facts

import (
	"sort"

	"slowpath/internal/recording"
)

// Acks is what the kernel source saw of replies to clients at other addresses, of which it may have seen the server's
// end alone. The clients' kernels acknowledge them without their processes: what is late is the path, the client's
// host, or a window that is closed.
type Acknowledgements struct {
	// late ones by what happened meanwhile: segments were retransmitted; the client's window was closed; neither
	Retransmitted, WindowClosed, Other int
	MaxRetransmittedNs, MaxOtherNs     int64
	Conns                              int
	// least round trip of the connection in the middle; 0 where unknown
	MinRTTNs          int64
	LateConns         map[string]bool // by the client's address: those with late ones,
	ClosedWindowConns map[string]bool // and those whose client closed its window, late or not
	OtherBytes        int64           // of the longest of Plain
	OtherClient       string
}

func (n *Node) Acknowledgements() Acknowledgements {
	a := Acknowledgements{LateConns: map[string]bool{}, ClosedWindowConns: map[string]bool{}}
	least := map[string]int64{}
	for _, e := range n.Events(recording.SourceTap, recording.KindAcknowledged) {
		d := recording.DetailOf[recording.AckDetail](e)
		if d.RTTMinNs > 0 {
			least[d.Client] = d.RTTMinNs
		}
		if d.Shut {
			a.ClosedWindowConns[d.Client] = true
		}
		if d.SureNs < d.RTTMinNs+n.Ledger.ThresholdNs {
			continue
		}
		a.LateConns[d.Client] = true
		switch {
		case d.Shut:
			a.WindowClosed++ // what is retransmitted into a closed window is a question
		case d.Resent > 0:
			a.Retransmitted++
			a.MaxRetransmittedNs = max(a.MaxRetransmittedNs, d.SureNs)
		default:
			a.Other++
			if d.SureNs > a.MaxOtherNs {
				a.MaxOtherNs, a.OtherBytes, a.OtherClient = d.SureNs, d.Unacked, d.Client
			}
		}
	}
	var all []int64
	for _, ns := range least {
		all = append(all, ns)
	}
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	if a.Conns = len(all); a.Conns > 0 {
		a.MinRTTNs = all[a.Conns/2]
	}
	return a
}
