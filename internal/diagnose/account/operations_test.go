package account

import (
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	"slowpath/internal/recording"
)

// TestCallersThatWaitedLonger: calls whose threads waited longer count for that, and as often as before.
func TestCallersThatWaitedLonger(t *testing.T) {
	rec := recording.New()
	for op, ns := range map[string][]int64{
		"client GET": {100e3, 100e3, 100e3, 200e3}, "awaited GET": {90e3, 500e3}, "operation GET": {50e6, 60e6},
	} {
		h := hdrhistogram.New(1, int64(60e9), 2)
		for _, v := range ns {
			if err := h.RecordValue(v); err != nil {
				t.Fatal(err)
			}
		}
		hdr, err := recording.EncodeHistogram(h)
		if err != nil {
			t.Fatal(err)
		}
		rec.Histogram(recording.Histogram{Second: 1, Source: recording.SourceTap, Node: "a:1", Op: op, HDR: hdr})
	}
	rec.Index()
	got := readTapHistograms(rec, nil)
	client := got.bySide[recording.Client]
	if n := client.TotalCount(); n != 4 || countFrom(client, 40e6) != 2 || countFrom(client, 150e3) != 3 {
		t.Errorf("%d calls, %d of 40 ms, %d of 150 µs", n, countFrom(client, 40e6), countFrom(client, 150e3))
	}
	if got.wire.TotalCount() != 4 || got.wire.Max() > 250e3 {
		t.Errorf("on the wire: %d calls, the longest %d ns", got.wire.TotalCount(), got.wire.Max())
	}
}
