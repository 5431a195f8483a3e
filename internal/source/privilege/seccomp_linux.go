package privilege

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// refusedCalls are those by which CAP_SYS_PTRACE, which stays so that /proc/PID can be read, would also reach into the
// processes of root and change them. slowpath makes none of them. /proc/PID/mem is a file of its process's user.
var refusedCalls = []uint32{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD,
}

// Offsets in struct seccomp_data, and the first number of x32, whose calls are those of amd64 with this bit.
const (
	offsetOfCall = 0
	offsetOfArch = 4
	firstOfX32   = 0x40000000
)

// refuseCalls has the kernel refuse refusedCalls on all threads, with EPERM, and those of other architectures, which
// have other numbers. no_new_privs must be set.
func refuseCalls() error {
	arch, known := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	if !known {
		return fmt.Errorf("system calls of %s cannot be refused", runtime.GOARCH)
	}
	const (
		load     = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal    = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		notBelow = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
		end      = unix.BPF_RET | unix.BPF_K
	)
	refuse := uint32(unix.SECCOMP_RET_ERRNO | unix.EPERM)
	filter := []unix.SockFilter{
		{Code: load, K: offsetOfArch},
		{Code: equal, Jt: 1, K: arch},
		{Code: end, K: refuse},
		{Code: load, K: offsetOfCall},
		{Code: notBelow, Jf: 1, K: firstOfX32},
		{Code: end, K: refuse},
	}
	for _, call := range refusedCalls {
		filter = append(filter, unix.SockFilter{Code: equal, Jf: 1, K: call}, unix.SockFilter{Code: end, K: refuse})
	}
	filter = append(filter, unix.SockFilter{Code: end, K: unix.SECCOMP_RET_ALLOW})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// Without SPEC_ALLOW kernels before 5.16 would slow down all code of slowpath.
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC|unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(filter)
	if errno != 0 {
		return fmt.Errorf("refusing ptrace and the like by seccomp: %w", errno)
	}
	if thread != 0 {
		return fmt.Errorf("refusing ptrace and the like by seccomp: the thread %d has a filter of its own", thread)
	}
	return nil
}
