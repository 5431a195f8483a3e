package top

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// lowPriority gives this goroutine a thread of its own of the lowest priority (nice 19), which ends with it: the
// goroutine stays locked to it. The function that it returns says how much CPU time the thread has used.
func lowPriority() func() time.Duration {
	runtime.LockOSThread()
	const lowest = 19
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), lowest) // where that is refused it is as others
	begin := threadCPU()
	return func() time.Duration { return threadCPU() - begin }
}

func threadCPU() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
