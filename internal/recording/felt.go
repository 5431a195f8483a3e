package recording

import (
	"sort"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// FeltAtClients are the calls at the clients' end as long as their threads waited for them, of the tap's histograms by
// side: that of Client, where no thread waited longer than its calls took.
func FeltAtClients(bySide map[string]*hdrhistogram.Histogram) *hdrhistogram.Histogram {
	client, awaited := bySide[Client], bySide[AwaitedCalls]
	if client == nil || awaited == nil {
		return client
	}
	felt := without(client, awaited)
	for _, h := range []*hdrhistogram.Histogram{bySide[Operations], bySide[Dialled]} {
		if h != nil {
			felt.Merge(h)
		}
	}
	return felt
}

// without is a histogram without as many calls as another one has: those of the same time, else of the next longer
// ones, which another end of their connections measured.
func without(h, less *hdrhistogram.Histogram) *hdrhistogram.Histogram {
	bars := h.Distribution()
	for _, l := range less.Distribution() {
		at := sort.Search(len(bars), func(i int) bool { return bars[i].From >= l.From })
		for i := range bars {
			b := &bars[(at+i)%len(bars)]
			some := min(l.Count, b.Count)
			b.Count, l.Count = b.Count-some, l.Count-some
		}
	}
	out := hdrhistogram.New(h.LowestTrackableValue(), h.HighestTrackableValue(), int(h.SignificantFigures()))
	for _, b := range bars {
		_ = out.RecordValues(b.From, b.Count) // it was in range
	}
	return out
}

// OpeningNs is how long a call that the tap saw waited for its connection to be opened, in nanoseconds; without dials
// that failed.
func OpeningNs(c Call, segs []Segment) (ns int64) {
	if c.Source != SourceTap || c.IntendedNs == c.StartNs {
		return 0
	}
	for _, s := range segs {
		if s.Actor == App && (s.State == Dial || s.State == TLS || s.State == Handshake) &&
			!strings.HasPrefix(s.Culprit, NoAnswerFrom) {
			ns += s.ToNs - s.FromNs
		}
	}
	return ns
}
