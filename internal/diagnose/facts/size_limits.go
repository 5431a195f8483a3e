package facts

import "slowpath/internal/recording"

// A size is a limit where chance does not explain that larger segments alone are lost.
const (
	// everyPathBytes of payload pass every path of IPv4: datagrams of 576 bytes (RFC 791, RFC 9293).
	// Bound: kernel, TCP_MSS_DEFAULT.
	everyPathBytes = 536
	// sizeByChance is the largest probability that all losses are of larger segments than all that arrived between
	// them, if size did not matter. Losses without an arrival between them count as one: the path may have been
	// down.
	// Bound: statistics, one direction in a thousand.
	sizeByChance = 0.001
)

// SizeLimit is what shows that a path drops large segments and lets small ones pass: the segments that one end sends to
// the other, between a client's host and the node.
type SizeLimit = recording.SegmentSizesDetail

// SizeLimits are the directions in which large segments never arrived, though they were sent again and again, while
// smaller ones did.
func (n *Node) SizeLimits() (out []SizeLimit) {
	for _, e := range n.Events(recording.SourceTap, recording.KindSegmentSizes) {
		d := recording.DetailOf[recording.SegmentSizesDetail](e)
		if d.LostBytes > max(d.PassedBytes, everyPathBytes) && orderedByChance(d.Runs, d.BetweenRuns) <= sizeByChance {
			out = append(out, d)
		}
	}
	return out
}

// orderedByChance is the probability that of lost and passed things, in any order, all lost ones are the largest.
func orderedByChance(lost, passed int64) float64 {
	p := 1.0
	for i := int64(1); i <= lost && p > sizeByChance; i++ {
		p *= float64(i) / float64(passed+i)
	}
	return p
}
