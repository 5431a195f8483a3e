package probe

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"slowpath/internal/clock"
)

const (
	wakeEvery = time.Millisecond
	// leastLate is what is kept: less is the kernel's usual time for a wake-up.
	leastLate = 100 * time.Microsecond
	// keptLate are the last waits that are kept: those of a cycle that has just ended are among them.
	keptLate = 4096
)

// Lateness is a thread on one CPU that does nothing but wake up every millisecond, and notes when it did so late: then
// no thread of this process could have run there.
type Lateness struct {
	CPU   int
	clock *clock.Real

	mu    sync.Mutex
	next  int64      // when it wakes up next
	waits [][2]int64 // from when it should have run, to when it did
}

// WatchLateness starts it, until ctx ends. Errors: this process may not run on that CPU.
func WatchLateness(ctx context.Context, c *clock.Real, cpu int) (*Lateness, error) {
	l := &Lateness{CPU: cpu, clock: c, next: c.Now()}
	pinned := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		var set unix.CPUSet
		set.Set(cpu)
		err := unix.SchedSetaffinity(0, &set)
		if err == nil {
			// a sleep may be longer by this, by default 50 µs; where it cannot be set, it stays so
			_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
		}
		pinned <- err
		if err == nil {
			l.run(ctx)
		}
	}()
	if err := <-pinned; err != nil {
		return nil, fmt.Errorf("pinning a thread to CPU %d: %w", cpu, err)
	}
	return l, nil
}

func (l *Lateness) run(ctx context.Context) {
	for due := l.clock.Now(); ctx.Err() == nil; {
		due += int64(wakeEvery)
		rest := unix.NsecToTimespec(max(due-l.clock.Now(), 0))
		_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &rest, nil) // a signal ends it early, which is not late
		now := l.clock.Now()
		l.mu.Lock()
		if now-due >= int64(leastLate) {
			if len(l.waits) >= keptLate {
				l.waits = append(l.waits[:0], l.waits[keptLate/2:]...)
			}
			l.waits = append(l.waits, [2]int64{due, now})
		}
		due = max(due, now)
		l.next = due + int64(wakeEvery)
		l.mu.Unlock()
	}
}

// Within is how long the thread was late within a time, in nanoseconds of the clock.
func (l *Lateness) Within(fromNs, toNs int64) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	late := int64(0)
	if toNs-l.next >= int64(leastLate) { // it still waits
		late = toNs - max(fromNs, l.next)
	}
	for _, w := range l.waits {
		late += max(min(w[1], toNs)-max(w[0], fromNs), 0)
	}
	return time.Duration(late)
}
