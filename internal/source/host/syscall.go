package host

import (
	"bytes"
	"runtime"
	"strconv"
)

// syscallOf names the system call of a line of /proc/PID/task/TID/syscall (fs/proc/base.c proc_pid_syscall): "running",
// or its number and arguments, or -1 for a thread that is blocked outside of a call, which is a page fault.
func syscallOf(line []byte) string {
	if bytes.HasPrefix(line, []byte("running")) {
		return ""
	}
	n, _, ok := scanInt(line)
	switch {
	case !ok:
		return ""
	case n == -1:
		return "page-fault"
	}
	if name, ok := syscallNames[runtime.GOARCH][n]; ok {
		return name
	}
	return "syscall-" + strconv.FormatInt(n, 10)
}

// syscallNames are the calls in which a server can block (arch/x86/entry/syscalls/syscall_64.tbl, scripts/syscall.tbl).
var syscallNames = map[string]map[int64]string{
	"amd64": {
		0: "read", 1: "write", 2: "open", 3: "close", 4: "stat", 5: "fstat", 8: "lseek", 9: "mmap", 10: "mprotect",
		11: "munmap",
		12: "brk", 17: "pread64", 18: "pwrite64", 19: "readv", 20: "writev", 25: "mremap", 26: "msync", 28: "madvise",
		40: "sendfile",
		44: "sendto", 45: "recvfrom", 46: "sendmsg", 47: "recvmsg", 56: "clone", 57: "fork", 58: "vfork", 59: "execve",
		60: "exit",
		61: "wait4", 74: "fsync", 75: "fdatasync", 76: "truncate", 77: "ftruncate", 82: "rename", 83: "mkdir",
		84: "rmdir", 87: "unlink",
		162: "sync", 202: "futex", 231: "exit_group", 232: "epoll_wait", 257: "openat", 263: "unlinkat",
		264: "renameat", 277: "sync_file_range",
		281: "epoll_pwait", 285: "fallocate", 306: "syncfs", 316: "renameat2", 435: "clone3",
	},
	"arm64": {
		22: "epoll_pwait", 34: "mkdirat", 35: "unlinkat", 38: "renameat", 45: "truncate", 46: "ftruncate",
		47: "fallocate", 56: "openat",
		57: "close", 62: "lseek", 63: "read", 64: "write", 65: "readv", 66: "writev", 67: "pread64", 68: "pwrite64",
		71: "sendfile",
		81: "sync", 82: "fsync", 83: "fdatasync", 84: "sync_file_range", 98: "futex", 206: "sendto", 207: "recvfrom",
		211: "sendmsg",
		212: "recvmsg", 214: "brk", 215: "munmap", 216: "mremap", 220: "clone", 221: "execve", 222: "mmap",
		226: "mprotect",
		227: "msync", 233: "madvise", 260: "wait4", 267: "syncfs", 276: "renameat2", 435: "clone3",
	},
}
