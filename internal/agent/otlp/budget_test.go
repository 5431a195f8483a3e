package otlp

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestDailyBudget: whoever sends whenever it is allowed sends within any day no more than a day has, and the last thing
// beyond it; and little less.
func TestDailyBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perDay := float64(rapid.IntRange(1<<20, 100<<20).Draw(t, "per day"))
		one := float64(rapid.IntRange(100, 50_000).Draw(t, "bytes"))
		now := time.Unix(0, 0)
		b := dailyBudget(perDay, func() time.Time { return now })
		sent, end := 0.0, now.Add(24*time.Hour)
		for now.Before(end) {
			for b.allows() {
				b.spend(one)
				sent += one
			}
			now = now.Add(time.Duration(rapid.IntRange(1, 1800).Draw(t, "pause")) * time.Second)
		}
		if sent > perDay+one || sent < 0.85*perDay {
			t.Fatalf("%v bytes of %v were sent in a day, %v each", sent, perDay, one)
		}
	})
}
