package facts

import (
	"slowpath/internal/diagnose/account"
	"slowpath/internal/recording"
)

// TLSHandshakes are the turns of the main thread in which a new connection's first bytes were read: the server's signature is
// made in it.
type TLSHandshakes struct {
	Spans   Spans
	Count   float64
	OnCPUNs float64
	from    map[int64]bool // when each began
}

// TLSHandshakes are found once: every suspect is asked about them.
func (n *Node) TLSHandshakes() *TLSHandshakes {
	if n.greeted != nil {
		return n.greeted
	}
	n.greeted = &TLSHandshakes{from: map[int64]bool{}}
	opened := n.OpenTimes()
	for _, e := range n.Events(recording.SourceTap, recording.KindWork) {
		d := recording.DetailOf[recording.WorkDetail](e)
		list, at := opened[d.Client], opened.last(d.Client, e.TimeNs+e.DurationNs)
		if d.Op != "?" || at < 0 {
			continue
		}
		opened[d.Client] = append(list[:at:at], list[at+1:]...) // what it does later is no handshake
		n.greeted.Spans = append(n.greeted.Spans, [2]int64{e.TimeNs, e.TimeNs + e.DurationNs})
		n.greeted.Count++
		n.greeted.OnCPUNs += float64(d.OnCPUNs)
		n.greeted.from[e.TimeNs] = true
	}
	n.greeted.Spans = Merge(n.greeted.Spans)
	return n.greeted
}

// isTLSHandshake: what the kernel source has no name for was a handshake.
func (n *Node) isTLSHandshake(s account.Suspect) bool {
	return s.Source == recording.SourceTap && s.Command == "?" && n.TLSHandshakes().from[s.FromNs]
}
