package otlp

import (
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"

	"slowpath/internal/live"
)

// TestSample: whatever comes, no more calls are kept than asked for: those at or above the threshold, and no others.
func TestSample(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 20).Draw(t, "most at any time")
		s := sample{most: most}
		all := rapid.SliceOfN(rapid.Uint64Range(0, 50), 0, 200).Draw(t, "randomness")
		for i, r := range all {
			c := sampled{SlowCall: live.SlowCall{Number: uint64(i + 1)}}
			binary.BigEndian.PutUint64(c.trace[8:], r)
			s.add(c)
		}
		asked := rapid.IntRange(0, most).Draw(t, "asked for")
		calls, threshold, left := s.take(asked)
		want := 0
		for _, r := range all {
			if r >= threshold {
				want++
			}
		}
		if len(calls) > asked || len(calls) != want || len(calls)+left != len(all) {
			t.Fatalf("%d calls and %d left out of %d; %d are %d or more", len(calls), left, len(all), want, threshold)
		}
		for i, c := range calls {
			if i > 0 && c.Number <= calls[i-1].Number {
				t.Fatal("they are not in order")
			}
		}
	})
}
