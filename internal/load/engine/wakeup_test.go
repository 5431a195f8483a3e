//go:build linux

package engine

import (
	"testing"
	"time"

	"slowpath/internal/wire/target"
)

// TestWakeUpDelay: the estimate follows how late sleeps end; signals do not change it, and there is none while others
// use the CPU.
func TestWakeUpDelay(t *testing.T) {
	k := wakeUpDelay{due: 1e9}
	sleeps := func(n int, late ...int64) {
		for i := range n {
			k.record(k.due + late[i%len(late)])
		}
	}
	for _, c := range []struct {
		name     string
		late     []int64
		from, to int64
	}{
		{"20 µs, now and then a millisecond", []int64{20_000, 20_000, 20_000, 1_000_000}, 19_000, 21_000},
		{"signals", []int64{-5_000}, 19_000, 21_000},
		{"a CPU that others use", []int64{3_000_000}, 0, 0},
		{"5 µs", []int64{5_000}, 4_000, 6_000},
	} {
		sleeps(2000, c.late...)
		if got := k.estimate(); got < c.from || got > c.to {
			t.Errorf("%s: a wake-up takes %d ns, want %d to %d", c.name, got, c.from, c.to)
		}
	}
}

// TestNoShortSleep: a worker does not sleep where it would wake up too late for a call that is due.
func TestNoShortSleep(t *testing.T) {
	o := options(t, target.Target{})
	o.Threads = 1
	o.Schedule = []Stretch{{Lasts: time.Minute, From: 1000, To: 1000}}
	w, err := newWorker(&run{Options: o}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	w.idle.put(newConn(-1, 1))
	w.hasDue, w.now, w.wakeUpDelay.median = true, w.r.Clock.Now(), 50_000
	w.checkTimeoutsAt = w.now + int64(time.Hour)
	for _, c := range []struct {
		name        string
		due, second time.Duration
		sleeps      time.Duration
	}{
		{"due after the wake-up", time.Minute, time.Hour, time.Minute},
		{"due before it", 40 * time.Microsecond, time.Hour, 0},
		{"the end of a second, which may be late", time.Minute, 40 * time.Microsecond, 40 * time.Microsecond},
	} {
		w.due, w.second = w.now+int64(c.due), w.now+int64(c.second)
		if got := w.timeout(); got != c.sleeps {
			t.Errorf("%s: sleeps %v, want %v", c.name, got, c.sleeps)
		}
	}
}
