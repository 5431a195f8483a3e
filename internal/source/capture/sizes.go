package capture

import (
	"net/netip"

	"slowpath/internal/recording"
)

// maxSizes is for how many pairs of a client's host and a direction the sizes of segments are kept, of all servers.
const maxSizes = 10_000

// direction is that of segments between a client's host and a server.
type direction struct {
	host       netip.Addr
	fromClient bool
}

// sizesOf are those of what an end sends; nil where they are not kept.
func (c *conn) sizesOf(h *half) *recording.SegmentSizes {
	d := direction{c.client.address.Addr(), h.client}
	s := c.node.sizes[d]
	if s == nil && c.a.sizes < maxSizes {
		s = &recording.SegmentSizes{}
		s.Client, s.From = d.host.String(), sideOf(h)
		if c.node.sizes == nil {
			c.node.sizes = map[direction]*recording.SegmentSizes{}
		}
		c.node.sizes[d] = s
		c.a.sizes++
	}
	return s
}

// writeSizes records the directions in which segments were lost.
func (a *analysis) writeSizes() {
	for _, n := range a.nodes {
		for _, s := range n.sizes {
			if s.Lost > 0 {
				a.event(n, recording.KindSegmentSizes, a.startNs, a.endNs-a.startNs, s.SegmentSizesDetail)
			}
		}
	}
}
