package host

import (
	"os"
	"runtime"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
)

func TestMeterReadsThisProcess(t *testing.T) {
	needs.Real(t)
	m, err := NewMeter(nil, os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	first, err := m.Read()
	if err != nil {
		t.Fatal(err)
	}
	if first.Threads[0].TID != os.Getpid() || first.Threads[0].Name == "" || len(first.CPUs) == 0 || first.State == 0 {
		t.Errorf("%+v", first)
	}
	await.Until(t, "a thread of this process had the CPU", func() bool { // schedstat grows at the timer tick
		u, err := m.Read()
		if err != nil {
			t.Fatal(err)
		}
		return total(u) > total(first)
	})
}

func total(u Usage) (sum time.Duration) {
	for _, t := range u.Threads {
		sum += t.Run
	}
	return sum
}
