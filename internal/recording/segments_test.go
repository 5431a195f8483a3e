package recording

import (
	"math"
	"slices"
	"testing"
)

// TestSegmentsOf: segments are given back as they were added, also those of a damaged recording.
func TestSegmentsOf(t *testing.T) {
	r := New()
	want := map[int64][]Segment{
		1: {
			{CallID: 1, Actor: Server, State: Busy, FromNs: 5, ToNs: 9, Culprit: "GET"},
			{CallID: 1, Actor: Server, State: Exec, FromNs: 9, ToNs: 30},
			{CallID: 1, Actor: Server, State: Busy, FromNs: 40, ToNs: 41, Culprit: "GET"},
		},
		7: {
			{CallID: 7, Actor: Client, FromNs: math.MaxInt64, ToNs: math.MinInt64},
			{CallID: 7, Actor: Client, FromNs: -3, ToNs: math.MaxInt64},
		},
	}
	r.Call(Call{ID: 1}, want[1]...)
	r.Call(Call{ID: 7}, want[7]...)
	r.Call(Call{ID: 8}, want[7]...)
	r.SetSegments(8, nil)
	w := r.Without(SourceTap)
	w.Call(Call{ID: 9}, Segment{Actor: Proxy})
	r.Call(Call{ID: 10}, Segment{Actor: Network})
	for _, id := range []int64{1, 7, 8} {
		if got := r.SegmentsOf(id); !slices.Equal(got, want[id]) {
			t.Errorf("of %d: %+v, want %+v", id, got, want[id])
		}
	}
	if nine, ten := w.SegmentsOf(9), r.SegmentsOf(10); nine[0].Actor != Proxy || ten[0].Actor != Network {
		t.Errorf("%+v, %+v", nine, ten)
	}
}
