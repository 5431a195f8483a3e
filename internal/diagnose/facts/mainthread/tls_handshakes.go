package mainthread

import (
	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/facts/connection"
	"slowpath/internal/recording"
)

// TLSHandshakes are the activities of the main thread in which a new connection's first bytes were read: the server's
// signature is made then.
type TLSHandshakes struct {
	// Spans are when it did so.
	Spans facts.Spans
	// Count is the number of handshakes.
	Count float64
	// OnCPUNs is the CPU time of all of them in nanoseconds.
	OnCPUNs   float64
	startedAt map[int64]bool // when each began
}

// TLSHandshakesOf are found once, since every suspect is compared with them.
func TLSHandshakesOf(n *facts.Node) TLSHandshakes {
	return facts.Once(n, "TLS handshakes", findTLSHandshakes)
}

func findTLSHandshakes(n *facts.Node) TLSHandshakes {
	out := TLSHandshakes{startedAt: map[int64]bool{}}
	opened := connection.OpenTimesOf(n)
	for _, e := range n.Events(recording.SourceTap, recording.KindActivity) {
		d := recording.DetailOf[recording.ActivityDetail](e)
		list, at := opened[d.Client], opened.Last(d.Client, e.TimeNs+e.DurationNs)
		if d.Op != "?" || at < 0 {
			continue
		}
		opened[d.Client] = append(list[:at:at], list[at+1:]...) // what it does later is no handshake
		out.Spans = append(out.Spans, facts.Span{FromNs: e.TimeNs, ToNs: e.TimeNs + e.DurationNs})
		out.Count++
		out.OnCPUNs += float64(d.OnCPUNs)
		out.startedAt[e.TimeNs] = true
	}
	out.Spans = facts.MergeSpans(out.Spans)
	return out
}

// isTLSHandshake reports whether an activity for which the tap has no name was a handshake.
func isTLSHandshake(n *facts.Node, s account.Suspect) bool {
	return s.Source == recording.SourceTap && s.Command == "?" && TLSHandshakesOf(n).startedAt[s.FromNs]
}
