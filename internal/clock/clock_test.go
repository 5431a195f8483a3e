package clock

import (
	"testing"
	"time"
)

func TestClockFollowsTheMonotonicClock(t *testing.T) {
	c := New()
	a := c.Now()
	at := time.Now()
	b := c.Now()
	if got := c.At(at); got < a || got > b {
		t.Errorf("At gives %d, not within [%d, %d]", got, a, b)
	}
}

func BenchmarkAlarm(b *testing.B) {
	a, err := NewAlarm(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer a.Close()
	for b.Loop() {
		a.Sleep(time.Millisecond)
	}
}
