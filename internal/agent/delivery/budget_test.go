package delivery

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
			for b.Allows() {
				b.Spend(one)
				sent += one
			}
			now = now.Add(time.Duration(rapid.IntRange(1, 1800).Draw(t, "pause")) * time.Second)
		}
		if sent > perDay+one || sent < 0.85*perDay {
			t.Fatalf("%v bytes of %v were sent in a day, %v each", sent, perDay, one)
		}
	})
}

// TestOverBudgetSaidOnce: who sends all that is allowed gets a little more every now and then. That it is too little is
// said once, and again after a time in which there was enough.
func TestOverBudgetSaidOnce(t *testing.T) {
	const perDay = 1 << 20
	now, said := time.Unix(0, 0), 0
	c := &Channel{Options: Options{
		What: "spans", Budget: dailyBudget(perDay, func() time.Time { return now }), Log: func(string) { said++ },
	}}
	push := func() error { c.Wrote(perDay); return nil }
	for range 10 {
		c.Send(1, push)
		c.Over("are left out", 1)
		now = now.Add(27 * time.Hour) // until a little is allowed again
	}
	if said != 1 {
		t.Errorf("it was said %d times, want once", said)
	}
	now = now.Add(24 * time.Hour)
	c.Send(1, func() error { return nil })
	c.Send(1, push)
	c.Over("are left out", 1)
	if said != 2 {
		t.Errorf("after a day with enough it was said %d times, want twice", said)
	}
	if s := c.Numbers(); s.Sent != 12 || s.Dropped != 11 {
		t.Errorf("%+v", s)
	}
}
