//go:build linux

package tap

import (
	"maps"
	"strconv"

	"golang.org/x/sys/unix"
)

func itoa(n int) string { return strconv.Itoa(n) }

// syscallName names the system calls in which threads of servers and clients block; others by number.
func syscallName(nr int) string {
	if nr < 0 {
		return "page fault"
	}
	if name, ok := syscallNames[nr]; ok {
		return name
	}
	return "system call " + itoa(nr)
}

// syscallNames has the system calls of all architectures, and those of this one.
var syscallNames = func() map[int]string {
	all := map[int]string{
		unix.SYS_CLONE: "clone", unix.SYS_CLONE3: "clone3", unix.SYS_CLOSE: "close",
		unix.SYS_EPOLL_PWAIT: "epoll_pwait", unix.SYS_FALLOCATE: "fallocate", unix.SYS_FDATASYNC: "fdatasync",
		unix.SYS_FSYNC: "fsync", unix.SYS_FUTEX: "futex", unix.SYS_MADVISE: "madvise", unix.SYS_MMAP: "mmap",
		unix.SYS_MSYNC: "msync", unix.SYS_MUNMAP: "munmap", unix.SYS_OPENAT: "openat", unix.SYS_PREAD64: "pread64",
		unix.SYS_PWRITE64: "pwrite64", unix.SYS_READ: "read", unix.SYS_SYNC_FILE_RANGE: "sync_file_range",
		unix.SYS_CONNECT: "connect", unix.SYS_CLOCK_NANOSLEEP: "clock_nanosleep", unix.SYS_NANOSLEEP: "nanosleep",
		unix.SYS_FCNTL: "fcntl", unix.SYS_FLOCK: "flock", unix.SYS_FTRUNCATE: "ftruncate", unix.SYS_IOCTL: "ioctl",
		unix.SYS_SENDMSG: "sendmsg", unix.SYS_SENDTO: "sendto", unix.SYS_UNLINKAT: "unlinkat",
		unix.SYS_WAIT4: "wait4", unix.SYS_WAITID: "waitid", unix.SYS_WRITE: "write", unix.SYS_WRITEV: "writev",
	}
	maps.Copy(all, archSyscalls)
	return all
}()
