package facts

import (
	"slices"

	"slowpath/internal/recording"
)

// IsProxy reports whether a proxy answers at the node's address: the watch of one found it, or its process was seen to
// pass calls on.
func (n *Node) IsProxy() bool {
	meta := n.Rec.Meta
	if meta[recording.MetaKind] == "proxy" && (len(n.Nodes) == 1 || meta[recording.MetaTarget] == n.Address) {
		return true
	}
	return slices.ContainsFunc(n.Rec.Calls, func(c recording.Call) bool {
		return c.Node == n.Address && slices.ContainsFunc(n.Rec.SegmentsOf(c.ID),
			func(s recording.Segment) bool { return s.Actor == recording.Proxy })
	})
}
