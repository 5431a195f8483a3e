package source

import (
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"slowpath/internal/source/host"
)

// ownCPU is the CPU time that this process has used, user and system (getrusage).
func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// ownRunDelay is the time in nanoseconds that the threads of this process have waited in a run queue (second field of
// /proc/PID/task/TID/schedstat). Threads that have ended are missing, so that it can fall. It is false without Linux.
func ownRunDelay(fs host.FS) (sum int64, ok bool) {
	proc, err := procfs.NewFS(fs.Path("/proc"))
	if err != nil {
		return 0, false
	}
	self, err := proc.Self()
	if err != nil {
		return 0, false
	}
	threads, err := proc.AllThreads(self.PID)
	if err != nil {
		return 0, false
	}
	for _, t := range threads {
		if s, err := t.Schedstat(); err == nil { // else it has ended
			sum += int64(s.WaitingNanoseconds)
		}
	}
	return sum, len(threads) > 0
}
