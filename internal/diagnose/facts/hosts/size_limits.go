package hosts

import (
	"math"

	"slowpath/internal/diagnose/account"
	"slowpath/internal/diagnose/degree"
	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

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
type SizeLimit struct {
	recording.SegmentSizesDetail
	// Source saw them.
	Source string
}

// SizeLimits are the directions in which large segments never arrived, though they were sent again and again, while
// smaller ones did.
func SizeLimits(n *facts.Node) (out []SizeLimit) {
	for _, source := range []string{recording.SourceTap, recording.SourceHost} {
		type direction struct{ client, from string }
		by, order := map[direction]*SizeLimit{}, []direction(nil)
		for _, e := range n.Events(source, recording.KindSegmentSizes) {
			d := recording.DetailOf[recording.SegmentSizesDetail](e)
			of := direction{d.Client, d.From}
			if by[of] == nil {
				by[of], order = &SizeLimit{Source: source}, append(order, of)
			}
			by[of].Add(d)
		}
		for _, of := range order {
			if l := by[of]; l.bySize() {
				out = append(out, *l)
			}
		}
	}
	return out
}

// bySize reports whether chance does not explain that all lost segments are larger than those that passed. The host's
// sockets do not show large segments that arrived at once, but those that had to be sent again. None of these arrived:
// by chance that happens on a path that lets a part of them through.
func (l *SizeLimit) bySize() bool {
	if l.LostBytes <= max(l.PassedBytes, everyPathBytes) {
		return false
	}
	if l.Source == recording.SourceHost && math.Pow(1-degree.Part, float64(l.Lost)) > account.ByChance {
		return false
	}
	return orderedByChance(l.Runs, l.BetweenRuns, l.BetweenBytes/l.LostBytes) <= sizeByChance
}

// orderedByChance is the probability that of lost and passed things, in any order, all lost ones are the largest but
// for so many others, which may be as large.
func orderedByChance(lost, passed, large int64) float64 {
	p := 1.0
	for i := int64(1); i <= lost && p > sizeByChance; i++ {
		p *= float64(large+i) / float64(passed+i)
	}
	return p
}
