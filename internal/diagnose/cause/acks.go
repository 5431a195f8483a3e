package cause

import (
	"fmt"
	"sort"

	"slowpath/internal/recording"
)

// Acks is what the kernel source saw of replies to clients at other addresses, of which it may have seen the server's
// end alone. The clients' kernels acknowledge them without their processes: what is late is the path, the client's
// host, or a window that is closed.
type Acks struct {
	// late ones by what happened meanwhile: segments were sent again; the client's window was closed; neither
	Lost, Shut, Plain int
	LostNs, PlainNs   int64
	Conns             int
	LeastNs           int64           // least round trip of the connection in the middle; 0 where unknown
	LateConns         map[string]bool // by the client's address: those with late ones,
	ShutConns         map[string]bool // and those whose client closed its window, late or not
	plainBytes        int64           // of the longest of Plain
	plainClient       string
}

func (n *Node) acks() Acks {
	a := Acks{LateConns: map[string]bool{}, ShutConns: map[string]bool{}}
	least := map[string]int64{}
	for _, e := range n.Events(recording.SourceTap, recording.KindAcknowledged) {
		d := recording.DetailOf[recording.AckDetail](e)
		if d.RTTMinNs > 0 {
			least[d.Client] = d.RTTMinNs
		}
		if d.Shut {
			a.ShutConns[d.Client] = true
		}
		if d.SureNs < d.RTTMinNs+n.Ledger.ThresholdNs {
			continue
		}
		a.LateConns[d.Client] = true
		switch {
		case d.Shut:
			a.Shut++ // what is sent again into a closed window is a question
		case d.Resent > 0:
			a.Lost++
			a.LostNs = max(a.LostNs, d.SureNs)
		default:
			a.Plain++
			if d.SureNs > a.PlainNs {
				a.PlainNs, a.plainBytes, a.plainClient = d.SureNs, d.Unacked, d.Client
			}
		}
	}
	var all []int64
	for _, ns := range least {
		all = append(all, ns)
	}
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	if a.Conns = len(all); a.Conns > 0 {
		a.LeastNs = all[a.Conns/2]
	}
	return a
}

// weighAcks sets late acknowledgements with segments that were sent again against those without.
func (f *Finding) weighAcks(n *Node) {
	a := n.acks()
	if a.Lost > 0 {
		f.support(recording.SourceTap, fmt.Sprintf("%d replies to clients at other addresses were acknowledged late, "+
			"up to %s after they were sent, and segments were sent again meanwhile", a.Lost, dur(a.LostNs)),
			float64(a.Lost), "replies")
	}
	if a.Plain > a.Lost {
		f.doubt(recording.SourceTap, fmt.Sprintf("%d replies to clients at other addresses were acknowledged late "+
			"with nothing sent again, the worst %s after %d bytes were on their way to %s: a path that is slow or "+
			"keeps packets waiting, or a client's host",
			a.Plain, dur(a.PlainNs), a.plainBytes, a.plainClient), float64(a.Plain), "replies")
	}
}

// weighDistance compares a floor with the round trips of clients at other addresses.
func (f *Finding) weighDistance(n *Node) {
	a := n.acks()
	switch {
	case a.LeastNs >= floorNs:
		f.support(recording.SourceTap, fmt.Sprintf("clients at other addresses have a round trip of %s at its best, "+
			"too (TCP; the middle of %d connections)", dur(a.LeastNs), a.Conns), float64(a.LeastNs), "ns")
	case a.Conns > 0:
		f.doubt(recording.SourceTap, fmt.Sprintf("clients at other addresses have a round trip of only %s at its "+
			"best (TCP; the middle of %d connections)", dur(a.LeastNs), a.Conns), float64(a.LeastNs), "ns")
	}
}
