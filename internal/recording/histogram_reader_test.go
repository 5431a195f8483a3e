package recording

import (
	"maps"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
	"pgregory.net/rapid"
)

// TestHistogramReader: a reader finds what the library finds, whatever the shape of a histogram.
func TestHistogramReader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.SampledFrom([]int64{1, 1000}).Draw(t, "lowest")
		h := hdrhistogram.New(low, 3_600_000_000_000, rapid.IntRange(1, 3).Draw(t, "digits"))
		for _, ns := range rapid.SliceOfN(rapid.Int64Range(0, 60_000_000_000), 1, 50).Draw(t, "times") {
			if err := h.RecordValue(ns); err != nil {
				t.Fatal(err)
			}
		}
		want := map[int64]int64{}
		for _, b := range h.Distribution() {
			if b.Count > 0 {
				want[b.From] += b.Count
			}
		}
		encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			t.Fatal(err)
		}
		got := map[int64]int64{}
		var r HistogramReader
		if !r.Each(encoded, func(ns, calls int64) { got[ns] += calls }) || !maps.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

// FuzzHistogramReader: whatever is stored as a histogram, reading it ends.
func FuzzHistogramReader(f *testing.F) {
	h := hdrhistogram.New(1, 60_000_000_000, 2)
	_ = h.RecordValue(123_456)
	encoded, _ := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	f.Add(encoded)
	f.Fuzz(func(t *testing.T, hdr []byte) {
		var r HistogramReader
		r.Each(hdr, func(ns, calls int64) {
			if ns < 0 || calls <= 0 {
				t.Fatal(ns, calls)
			}
		})
	})
}
