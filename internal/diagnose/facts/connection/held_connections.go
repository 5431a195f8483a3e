package connection

import (
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// Held is when commands that block by design held connections of this node, by the client's address.
func Held(n *facts.Node) map[string]facts.Spans {
	out := map[string]facts.Spans{}
	for _, e := range n.Events(recording.SourceTap, recording.KindBlockingCommand) {
		conn := recording.DetailOf[recording.BlockingCommandDetail](e).Client
		out[conn] = append(out[conn], facts.Span{FromNs: e.TimeNs, ToNs: e.TimeNs + e.DurationNs})
	}
	for conn, list := range out {
		out[conn] = facts.MergeSpans(list)
	}
	return out
}
