package bench

import (
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latency is the quantiles of a histogram of nanoseconds, and the histogram itself, so that results can be added up
// exactly.
type Latency struct {
	Calls   int64  `json:"calls"`
	MinNs   int64  `json:"min_ns"`
	MeanNs  int64  `json:"mean_ns"`
	P50Ns   int64  `json:"p50_ns"`
	P90Ns   int64  `json:"p90_ns"`
	P99Ns   int64  `json:"p99_ns"`
	P999Ns  int64  `json:"p999_ns"`
	P9999Ns int64  `json:"p9999_ns"`
	MaxNs   int64  `json:"max_ns"`
	HDR     string `json:"hdr"` // HdrHistogram V2, compressed, base64
}

// latencyOf gives the quantiles of a histogram.
func latencyOf(h *hdrhistogram.Histogram) (Latency, error) {
	hdr, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return Latency{}, fmt.Errorf("encoding a histogram: %w", err)
	}
	l := Latency{Calls: h.TotalCount(), HDR: string(hdr)}
	if l.Calls == 0 {
		return l, nil
	}
	q := h.ValueAtPercentiles([]float64{50, 90, 99, 99.9, 99.99})
	l.MinNs, l.MeanNs, l.MaxNs = h.Min(), int64(h.Mean()), h.Max()
	l.P50Ns, l.P90Ns, l.P99Ns, l.P999Ns, l.P9999Ns = q[50], q[90], q[99], q[99.9], q[99.99]
	return l, nil
}

// Histogram decodes the histogram.
func (l Latency) Histogram() (*hdrhistogram.Histogram, error) {
	h, err := hdrhistogram.Decode([]byte(l.HDR))
	if err != nil {
		return nil, fmt.Errorf("the histogram of a result (hdr): %w", err)
	}
	return h, nil
}
