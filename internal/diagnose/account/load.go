package account

import (
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/recording"
)

// own reports whether slowpath itself made the call: its probe, or a load.
func own(c recording.Call) bool {
	return c.Source == recording.SourceProbe || c.Source == recording.SourceLoad
}

// loads are the latencies of all calls of a load, by node. Its recorded calls are the slow ones and a sample, and say
// nothing of what is usual.
func loads(rec *recording.Recording) map[string]*hdrhistogram.Histogram {
	out := map[string]*hdrhistogram.Histogram{}
	for _, h := range rec.Histograms {
		from, _, ok := strings.Cut(h.Op, " ")
		if h.Source != recording.SourceLoad || !ok || from != recording.LoadFromIntended {
			continue
		}
		if one, err := hdrhistogram.Decode(h.HDR); err == nil { // a damaged row is as good as none
			out[h.Node] = merge(out[h.Node], one)
		}
	}
	return out
}

// loadPath is the path of all calls of a load to a node.
func loadPath(node string, h *hdrhistogram.Histogram) Path {
	return Path{
		Node: node, Conn: recording.ConnLoad, Calls: int(h.TotalCount()), MinNs: h.Min(),
		P50Ns: h.ValueAtQuantile(50), P90Ns: h.ValueAtQuantile(90),
		P99Ns: h.ValueAtQuantile(99), MaxNs: h.Max(), TotalNs: int64(h.Mean() * float64(h.TotalCount())),
	}
}
