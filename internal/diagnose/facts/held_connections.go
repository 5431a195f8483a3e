package facts

import "slowpath/internal/recording"

// Held is when commands that block by design held connections of this node, by the client's address.
func (n *Node) Held() map[string]Spans {
	out := map[string]Spans{}
	for _, e := range n.Events(recording.SourceTap, recording.KindBlockingCommand) {
		conn := recording.DetailOf[recording.BlockingCommandDetail](e).Client
		out[conn] = append(out[conn], Span{e.TimeNs, e.TimeNs + e.DurationNs})
	}
	for conn, list := range out {
		out[conn] = MergeSpans(list)
	}
	return out
}
