package hosts

import (
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/recording"
)

// CapturedPath is what a packet capture shows of how far a node is from where it was made. Its times are in
// nanoseconds.
type CapturedPath struct {
	// Calls is the number of calls that were seen on their way to the node and back.
	Calls int64
	// MinNs is the fastest of them.
	MinNs int64
	// P50Ns is their median.
	P50Ns int64
	// P90Ns is the time that nine of ten do not exceed.
	P90Ns int64
	// Dials is the number of connections whose opening is in the capture.
	Dials int
	// ConnectMinNs is the shortest time from a SYN to its answer, which the node's kernel gives and not its process; 0
	// where none was seen.
	ConnectMinNs int64
}

// CapturedPathOf is that of the node; the zero value where the recording is no capture, or was made at the node's side.
func CapturedPathOf(n *facts.Node) (p CapturedPath) {
	if !n.Rec.Used(recording.SourceCapture) {
		return p
	}
	var all *hdrhistogram.Histogram
	for _, h := range n.Rec.HistogramSums(recording.SourceTap) {
		if h.Node != n.Address || !strings.HasPrefix(h.Op, recording.Client+" ") {
			continue
		}
		if all == nil {
			all = hdrhistogram.New(h.Sum.LowestTrackableValue(), h.Sum.HighestTrackableValue(),
				int(h.Sum.SignificantFigures()))
		}
		all.Merge(h.Sum)
	}
	if all == nil {
		return p
	}
	p.Calls, p.MinNs = all.TotalCount(), all.Min()
	p.P50Ns, p.P90Ns = all.ValueAtQuantile(50), all.ValueAtQuantile(90)
	for e := range n.Rec.Conns(n.Address, recording.KindOpen) {
		if e.Side == recording.Client && e.DialNs > 0 {
			p.Dials++
			if p.ConnectMinNs == 0 || e.DialNs < p.ConnectMinNs {
				p.ConnectMinNs = e.DialNs
			}
		}
	}
	return p
}
