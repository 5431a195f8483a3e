package probe

import (
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"

	"slowpath/internal/clock"
)

// TestLateness: a thread wakes up on its CPU, and says for how long it did not.
func TestLateness(t *testing.T) {
	needs.Real(t)
	clk := clock.New()
	cpu := 0
	l, err := WatchLateness(t.Context(), clk, cpu)
	if err != nil {
		t.Skip("may not run there: ", err)
	}
	begin := clk.Now()
	await.Until(t, "it wakes up", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.next > begin+int64(20*wakeEvery)
	})
	end := clk.Now()
	if late := l.Within(begin, end); late < 0 || int64(late) > end-begin {
		t.Errorf("late by %v of %v", late, time.Duration(end-begin))
	}
	if _, err := WatchLateness(t.Context(), clk, 1000); err == nil {
		t.Error("there is no CPU 1000")
	}
}
