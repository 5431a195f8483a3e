package source

import (
	"syscall"
	"time"
)

// ownCPU is the CPU time that this process has used, user and system (getrusage).
func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
