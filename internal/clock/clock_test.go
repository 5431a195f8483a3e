package clock

import (
	"context"
	"testing"
	"time"
)

func TestAlarmSleepsAndEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	a, err := NewAlarm(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	start := time.Now()
	for range 3 {
		if !a.Sleep(3 * time.Millisecond) {
			t.Fatal("ended early")
		}
	}
	if d := time.Since(start); d < 9*time.Millisecond {
		t.Errorf("slept %v, want at least 9 ms", d)
	}
	if !a.Sleep(-1) {
		t.Error("a sleep of no length is not the end")
	}
	time.AfterFunc(10*time.Millisecond, cancel)
	if a.Sleep(time.Hour) {
		t.Error("the end of the context must end the sleep")
	}
	if a.Sleep(time.Hour) || a.Sleep(0) {
		t.Error("after the end there is no sleep")
	}
}

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
