package clock

import (
	"context"
	"testing"
	"time"

	"slowpath/internal/house/needs"
)

func TestAlarmSleepsAndEnds(t *testing.T) {
	needs.Real(t)
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
