package top

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// lowPriority gives this goroutine a thread of its own of low priority, which ends with it: the goroutine stays locked
// to it. With the lowest one (nice 19) it would have next to nothing of CPUs that others keep busy, and the screen,
// which waits for it where Go stops all threads, would stand still. The function that it returns says how much CPU
// time the thread has used.
func lowPriority() func() time.Duration {
	runtime.LockOSThread()
	const nice = 5
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), nice) // where that is refused it is as others
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
