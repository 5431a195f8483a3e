//go:build linux

package tap

import "runtime"

// syscallName names the system calls in which threads of servers and clients block; others by number.
func syscallName(nr int) string {
	if nr < 0 {
		return "page fault"
	}
	if name, ok := syscallNames[runtime.GOARCH][nr]; ok {
		return name
	}
	return "system call " + itoa(nr)
}

var syscallNames = map[string]map[int]string{
	"amd64": {
		0: "read", 1: "write", 3: "close", 9: "mmap", 11: "munmap", 17: "pread64", 18: "pwrite64", 20: "writev",
		26: "msync", 28: "madvise", 56: "clone",
		57: "fork", 61: "wait4", 74: "fsync", 75: "fdatasync", 82: "rename", 87: "unlink", 202: "futex",
		232: "epoll_wait", 257: "openat", 277: "sync_file_range",
		281: "epoll_pwait", 285: "fallocate", 435: "clone3",
	},
	"arm64": {
		57: "close", 63: "read", 64: "write", 66: "writev", 67: "pread64", 68: "pwrite64", 82: "fsync",
		83: "fdatasync", 84: "sync_file_range", 98: "futex",
		22: "epoll_pwait", 47: "fallocate", 35: "unlinkat", 38: "renameat", 56: "openat", 215: "munmap", 220: "clone",
		222: "mmap", 227: "msync", 233: "madvise",
		260: "wait4", 435: "clone3",
	},
}
