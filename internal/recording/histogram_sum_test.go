package recording

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// TestHistogramSums: the sum of histograms is that of the library, also where they have several shapes, and damaged
// rows count for nothing.
func TestHistogramSums(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	r := New()
	want := hdrhistogram.New(1000, 3600e9, 2)
	fast := 0
	for i := range 200 {
		h := hdrhistogram.New(1000, 3600e9, 2)
		if i%50 == 7 {
			h = hdrhistogram.New(1, 60e9, 3)
		}
		for range random.IntN(300) {
			_ = h.RecordValues(1000+random.Int64N(1<<random.IntN(35)), 1+random.Int64N(1<<random.IntN(30)))
		}
		hdr, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			t.Fatal(err)
		}
		if i%10 == 3 {
			hdr[len(hdr)/2] ^= 1
			if _, err := hdrhistogram.Decode(hdr); err == nil {
				t.Fatalf("row %d is not damaged", i)
			}
		} else {
			want.Merge(h)
		}
		if _, _, ok := (&decoder{}).decode(hdr); ok {
			fast++
		}
		r.Histogram(Histogram{Second: int64(i), Source: SourceTap, Node: "a:1", Op: "client GET", HDR: hdr})
	}
	r.Histogram(Histogram{Source: SourceTap, Node: "a:1", Op: "client SET", HDR: []byte("AAAA")})
	r.Histogram(Histogram{Source: SourceProbe, Node: "a:1", Op: "kept GET", HDR: r.Histograms[0].HDR})
	got := r.HistogramSums(SourceTap)
	if len(got) != 1 || got[0].Node != "a:1" || got[0].Op != "client GET" {
		t.Fatalf("%+v", got)
	}
	if !slices.Equal(got[0].Sum.Export().Counts, want.Export().Counts) || got[0].Sum.Mean() != want.Mean() {
		t.Errorf("%d calls of %.0f ns, want %d of %.0f", got[0].Sum.TotalCount(), got[0].Sum.Mean(), want.TotalCount(),
			want.Mean())
	}
	if fast < 150 {
		t.Errorf("%d of 200 are read at once", fast)
	}
}

// TestDecodeHostileHistogram: an encoding that inflates without end, or counts beyond its shape, is none.
func TestDecodeHostileHistogram(t *testing.T) {
	into := make([]int64, 10)
	for _, counts := range [][]int64{{-11}, {-10, 1}, {1 << 41}, {-1 << 63}, {1, -9, 1}} {
		if addCounts(into, counts) {
			t.Errorf("%d are added", counts)
		}
	}
	if !addCounts(into, []int64{3, -8, 4}) || into[0] != 3 || into[9] != 4 {
		t.Errorf("%d", into)
	}
	if _, _, ok := (&decoder{}).decode(bytes.Repeat([]byte("A"), 40)); ok {
		t.Error("zeros are a histogram")
	}
}
