package probe

import (
	"time"

	"golang.org/x/sys/unix"
)

// nanosleep sleeps in the kernel, which is late by its timer slack of 50 µs (prctl PR_SET_TIMERSLACK). A signal may end it early,
// which costs a probe nothing but its place within the slot.
func nanosleep(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_ = unix.Nanosleep(&ts, nil)
}
