package account

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTimeIndex compares with a look at all items, of which some last for minutes or for years.
func TestTimeIndex(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	span := func() [2]int64 {
		lasts := []int64{1e6, 3e9, 90e9, 1e18}[random.IntN(4)]
		from := random.Int64N(600e9)
		return [2]int64{from, from + random.Int64N(lasts)}
	}
	items := make([][2]int64, 300)
	for i := range items {
		items[i] = span()
	}
	x := newTimeIndex(len(items), func(i int) (int64, int64) { return items[i][0], items[i][1] })
	for range 500 {
		at := span()
		got := x.touching(at[0], at[1])
		for i, item := range items {
			if item[0] < at[1] && item[1] > at[0] && !slices.Contains(got, i) {
				t.Fatalf("item %d at %v is missing for %v", i, item, at)
			}
		}
		if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
			t.Fatalf("not in order, or twice: %v", got)
		}
	}
}
