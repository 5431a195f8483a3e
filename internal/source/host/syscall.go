package host

import (
	"bytes"
	"runtime"
	"strconv"
)

// syscallOf names the system call of a line of /proc/PID/task/TID/syscall (fs/proc/base.c proc_pid_syscall): "running",
// or its number and arguments, or -1 for a thread that is blocked outside of a call, which is a page fault. args are
// its first arguments.
func syscallOf(line []byte) (name string, args [4]uint64) {
	if bytes.HasPrefix(line, []byte("running")) {
		return "", args
	}
	n, rest, ok := scanInt(line)
	switch {
	case !ok:
		return "", args
	case n == -1:
		return "page-fault", args
	}
	for i := range args {
		args[i], rest = scanHex(rest)
	}
	if name, ok := syscallNames[runtime.GOARCH][n]; ok {
		return name, args
	}
	return "syscall-" + strconv.FormatInt(n, 10), args
}

// scanHex reads " 0x1f" at the start of b, and gives the rest; 0 where there is none, or too large a one.
func scanHex(b []byte) (n uint64, rest []byte) {
	digits, ok := bytes.CutPrefix(b, []byte(" 0x"))
	if !ok {
		return 0, b
	}
	end := bytes.IndexAny(digits, " \n")
	if end < 0 {
		end = len(digits)
	}
	n, err := strconv.ParseUint(string(digits[:end]), 16, 64)
	if err != nil {
		n = 0
	}
	return n, digits[end:]
}

// idleSyscalls are the calls in which a server's main thread sleeps while it waits for work, or while it carries out a
// command (DEBUG SLEEP, MIGRATE). In any other it waits for something else, and serves nobody.
var idleSyscalls = map[string]bool{
	"": true, "epoll_wait": true, "epoll_pwait": true, "epoll_pwait2": true, "io_uring_enter": true,
	"io_getevents": true, "read": true, "readv": true, "recvfrom": true, "recvmsg": true, "accept": true,
	"accept4": true, "poll": true, "ppoll": true, "select": true, "pselect6": true, "futex": true,
	"nanosleep": true, "clock_nanosleep": true, "restart_syscall": true, "page-fault": true,
}

// syscallNames are the calls in which a server can block (arch/x86/entry/syscalls/syscall_64.tbl, scripts/syscall.tbl).
var syscallNames = map[string]map[int64]string{
	"amd64": {
		0: "read", 1: "write", 2: "open", 3: "close", 4: "stat", 5: "fstat", 7: "poll", 8: "lseek", 9: "mmap",
		10: "mprotect", 11: "munmap", 12: "brk", 16: "ioctl", 17: "pread64", 18: "pwrite64", 19: "readv",
		20: "writev", 23: "select", 25: "mremap", 26: "msync", 28: "madvise", 35: "nanosleep", 40: "sendfile",
		42: "connect", 43: "accept", 44: "sendto", 45: "recvfrom", 46: "sendmsg", 47: "recvmsg", 56: "clone",
		57: "fork", 58: "vfork", 59: "execve", 60: "exit", 61: "wait4", 72: "fcntl", 73: "flock", 74: "fsync",
		75: "fdatasync", 76: "truncate", 77: "ftruncate", 82: "rename", 83: "mkdir", 84: "rmdir", 87: "unlink",
		162: "sync", 202: "futex", 208: "io_getevents", 219: "restart_syscall", 230: "clock_nanosleep",
		231: "exit_group", 232: "epoll_wait", 257: "openat", 263: "unlinkat", 264: "renameat", 270: "pselect6",
		271: "ppoll", 277: "sync_file_range", 281: "epoll_pwait", 285: "fallocate", 288: "accept4", 306: "syncfs",
		316: "renameat2", 426: "io_uring_enter", 435: "clone3", 441: "epoll_pwait2",
	},
	"arm64": {
		4: "io_getevents", 22: "epoll_pwait", 25: "fcntl", 29: "ioctl", 32: "flock", 34: "mkdirat", 35: "unlinkat",
		38: "renameat", 45: "truncate", 46: "ftruncate", 47: "fallocate", 56: "openat", 57: "close", 62: "lseek",
		63: "read", 64: "write", 65: "readv", 66: "writev", 67: "pread64", 68: "pwrite64", 71: "sendfile",
		72: "pselect6", 73: "ppoll", 81: "sync", 82: "fsync", 83: "fdatasync", 84: "sync_file_range", 98: "futex",
		101: "nanosleep", 115: "clock_nanosleep", 128: "restart_syscall", 202: "accept", 203: "connect",
		206: "sendto", 207: "recvfrom", 211: "sendmsg", 212: "recvmsg", 214: "brk", 215: "munmap", 216: "mremap",
		220: "clone", 221: "execve", 222: "mmap", 226: "mprotect", 227: "msync", 233: "madvise", 242: "accept4",
		260: "wait4", 267: "syncfs", 276: "renameat2", 426: "io_uring_enter", 435: "clone3", 441: "epoll_pwait2",
	},
}
