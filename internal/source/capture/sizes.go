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

// sizes are which segments of a direction arrive.
type sizes struct {
	recording.SegmentSizesDetail
	passedBefore int64 // of Passed, at the last loss
}

// sizesOf are those of what an end sends; nil where they are not kept.
func (c *conn) sizesOf(h *half) *sizes {
	d := direction{c.client.address.Addr(), h.client}
	s := c.node.sizes[d]
	if s == nil && c.a.sizes < maxSizes {
		s = &sizes{SegmentSizesDetail: recording.SegmentSizesDetail{Client: d.host.String(), From: sideOf(h)}}
		if c.node.sizes == nil {
			c.node.sizes = map[direction]*sizes{}
		}
		c.node.sizes[d] = s
		c.a.sizes++
	}
	return s
}

// pass counts a segment that was acknowledged and sent once.
func (s *sizes) pass(bytes int) {
	if s != nil {
		s.Passed, s.PassedBytes = s.Passed+1, max(s.PassedBytes, int64(bytes))
	}
}

// lose counts a segment that was sent again in vain, and then waited.
func (s *sizes) lose(bytes int, waitedNs int64) {
	if s == nil {
		return
	}
	between := s.Passed - s.passedBefore
	if s.Lost == 0 || int64(bytes) < s.LostBytes {
		s.LostBytes = int64(bytes)
	}
	switch {
	case s.Lost == 0:
		s.Runs = 1
	case between > 0:
		s.Runs, s.BetweenRuns = s.Runs+1, s.BetweenRuns+between
	}
	s.Lost, s.WaitedNs, s.passedBefore = s.Lost+1, s.WaitedNs+waitedNs, s.Passed
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
