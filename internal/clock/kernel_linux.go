package clock

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Monotonic is CLOCK_MONOTONIC in nanoseconds: the time of the kernel's own events, such as bpf_ktime_get_ns.
func Monotonic() (int64, error) { return read(unix.CLOCK_MONOTONIC) }

// ThreadCPU is for how long the running thread has had the CPU, in nanoseconds; 0 where that is not known.
func ThreadCPU() int64 {
	ns, err := read(unix.CLOCK_THREAD_CPUTIME_ID)
	if err != nil {
		return 0
	}
	return ns
}

func read(id int32) (int64, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(id, &t); err != nil {
		return 0, fmt.Errorf("reading clock %d: %w", id, err)
	}
	return t.Nano(), nil
}
