package agent

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ReleaseProgram gives back the pages of the program itself: the begin of a watch reads large parts of it that nothing
// needs later. They are read only; what is needed again comes back from the page cache.
func ReleaseProgram() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(maps)) {
		f := strings.Fields(line)
		if len(f) < 6 || f[5] != program || f[1] != "r-xp" && f[1] != "r--p" {
			continue
		}
		low, high, _ := strings.Cut(f[0], "-")
		from, badFrom := strconv.ParseUint(low, 16, 64)
		to, badTo := strconv.ParseUint(high, 16, 64)
		if badFrom == nil && badTo == nil && from < to {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(from), uintptr(to-from), unix.MADV_DONTNEED)
		}
	}
}

// slackenTimers lets the kernel end the sleeps of all threads of this process, and of those it will start, up to d
// late: 50 µs where not asked (prctl(2), PR_SET_TIMERSLACK). It does nothing in a program built with cgo, which
// slowpath is not.
func slackenTimers(d time.Duration) {
	_, _, _ = syscall.AllThreadsSyscall(unix.SYS_PRCTL, unix.PR_SET_TIMERSLACK, uintptr(d), 0)
}
