package cause

import (
	"fmt"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// weighAcks sets late acknowledgements with segments that were sent again against those without.
func (f *Finding) weighAcks(n *facts.Node) {
	a := n.Acks()
	if a.Lost > 0 {
		f.support(recording.SourceTap, fmt.Sprintf("%d replies to clients at other addresses were acknowledged late, "+
			"up to %s after they were sent, and segments were sent again meanwhile", a.Lost, facts.Dur(a.LostNs)),
			float64(a.Lost), "replies")
	}
	if a.Plain > a.Lost {
		f.doubt(recording.SourceTap, fmt.Sprintf("%d replies to clients at other addresses were acknowledged late "+
			"with nothing sent again, the worst %s after %d bytes were on their way to %s: a path that is slow or "+
			"keeps packets waiting, or a client's host",
			a.Plain, facts.Dur(a.PlainNs), a.PlainBytes, a.PlainClient), float64(a.Plain), "replies")
	}
}

// weighDistance compares a floor with the round trips of clients at other addresses.
func (f *Finding) weighDistance(n *facts.Node) {
	a := n.Acks()
	switch {
	case a.LeastNs >= facts.FloorNs:
		f.support(recording.SourceTap, fmt.Sprintf("clients at other addresses have a round trip of %s at its best, "+
			"too (TCP; the middle of %d connections)", facts.Dur(a.LeastNs), a.Conns), float64(a.LeastNs), "ns")
	case a.Conns > 0:
		f.doubt(recording.SourceTap, fmt.Sprintf("clients at other addresses have a round trip of only %s at its "+
			"best (TCP; the middle of %d connections)", facts.Dur(a.LeastNs), a.Conns), float64(a.LeastNs), "ns")
	}
}
