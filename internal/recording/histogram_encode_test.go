package recording

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// TestEncodeHistogram: the library and the reader of recordings read what it writes as what the library writes.
func TestEncodeHistogram(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		h := hdrhistogram.New(1, int64(time.Minute), 1+i%3)
		for range random.IntN(1 + i*15) {
			_ = h.RecordValues(random.Int64N(1<<(1+random.IntN(35))), 1+random.Int64N(1<<random.IntN(50)))
		}
		ours, err := EncodeHistogram(h)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			t.Fatal(err)
		}
		a, err := hdrhistogram.Decode(ours)
		if err != nil {
			t.Fatal(err)
		}
		b, err := hdrhistogram.Decode(theirs)
		if err != nil || !reflect.DeepEqual(a.Export(), b.Export()) || a.Max() != b.Max() || a.Min() != b.Min() {
			t.Fatalf("histogram %d: %v, it is another one", i, err)
		}
		sum := func(hdr []byte) []HistogramSum {
			var s sums
			s.add(Histogram{Source: SourceTap, HDR: hdr})
			return s.done()
		}
		if !reflect.DeepEqual(sum(ours), sum(theirs)) {
			t.Fatalf("histogram %d: its sum is another one", i)
		}
		if len(ours) > len(theirs)*5/4+40 {
			t.Errorf("histogram %d: %d bytes, the library's has %d", i, len(ours), len(theirs))
		}
	}
}

// TestLatencyCounts: what it encodes is what a histogram of the library has.
func TestLatencyCounts(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var c LatencyCounts
	for i := range 300 {
		h := hdrhistogram.New(1, int64(LatencyMost), latencyFigures)
		c.Reset()
		add := func(ns, n int64) {
			c.Add(ns, n)
			_ = h.RecordValues(min(ns, int64(LatencyMost)), n)
		}
		for range random.IntN(1 + i*3) {
			add(random.Int64N(1<<(1+random.IntN(38))), 1+random.Int64N(1<<random.IntN(40)))
		}
		for _, ns := range []int64{0, 1, 255, 256, 511, 512, int64(LatencyMost) - 1, int64(LatencyMost)} {
			add(ns, int64(i))
		}
		ours, err := c.Encode()
		theirs, err2 := EncodeHistogram(h)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		if string(ours) != string(theirs) {
			t.Fatalf("histogram %d is another one", i)
		}
	}
}

// TestEncodeTimes: what it encodes is what a histogram of the library has.
func TestEncodeTimes(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for i := range 300 {
		low, figures := []int64{1, 1000}[i%2], 1+i%4
		h := hdrhistogram.New(low, int64(time.Hour), figures)
		var times []int64
		for range random.IntN(1 + i) {
			times = append(times, random.Int64N(1<<(1+random.IntN(41))))
			_ = h.RecordValue(times[len(times)-1])
		}
		ours, err := EncodeTimes(times, low, int64(time.Hour), figures)
		theirs, err2 := EncodeHistogram(h)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		if string(ours) != string(theirs) {
			t.Fatalf("histogram %d is another one", i)
		}
	}
}

func BenchmarkEncodeHistogram(b *testing.B) {
	h := hdrhistogram.New(1, int64(time.Minute), 2)
	for i := range int64(300) {
		_ = h.RecordValues(20_000+i*i*50, 5)
	}
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = EncodeHistogram(h)
		}
	})
	b.Run("library", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		}
	})
}
