package privilege

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kept are the capabilities that a watch needs until its end.
var kept = []int{
	unix.CAP_PERFMON,         // hooks runtimes and TLS libraries of clients that are seen during the watch
	unix.CAP_SYS_PTRACE,      // reads /proc/PID of others: io, syscall, fd, maps, ns
	unix.CAP_DAC_READ_SEARCH, // reads files that only their owner may read
}

// Drop gives up for good, on all threads, every capability but those of kept, and the right to gain others by executing
// a program (no_new_privs). What is attached in the kernel stays attached; no program can be loaded after this. System
// calls that would change other processes by means of a kept capability are refused (seccomp).
//
// Root also becomes another user, since root may write its own files without any capability: Nobody, or the one user
// whose files or sockets the watch still needs. Where it needs those of several, slowpath stays root and keeps
// CAP_DAC_OVERRIDE. own, unless empty, is a directory of slowpath's own, which it goes on to use as that user. Errors
// match ErrBuild, or are those of the kernel.
func Drop(users []User, own string) error {
	user, several := one(users)
	keep := slices.Clone(kept)
	if several {
		keep = append(keep, unix.CAP_DAC_OVERRIDE)
	}
	return drop(user, several, keep, own)
}

// Able reports whether this build can give up privileges, and is ErrBuild else.
func Able() error { return onAllThreads(unix.SYS_GETPID, 0, 0) }

// Stay is Drop for an agent, which becomes this user, and keeps CAP_BPF, too: it loads its programs again whenever the
// servers are others. An own directory is handed over first.
func Stay(user User, own string) error {
	return drop(user, false, append(slices.Clone(kept), unix.CAP_BPF), own)
}

// drop gives up all capabilities but these. asRoot: it stays root.
func drop(user User, asRoot bool, keep []int, own string) error {
	const bound = 63 // the kernel has no capability beyond; EINVAL ends the loop before
	if err := onAllThreads(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1); err != nil {
		return fmt.Errorf("setting no_new_privs: %w", err)
	}
	permitted, err := permittedNow()
	if err != nil {
		return err
	}
	for c := 0; c <= bound && has(permitted, unix.CAP_SETPCAP); c++ {
		err := onAllThreads(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, uintptr(c))
		if errors.Is(err, unix.EINVAL) {
			break
		}
		if err != nil {
			return fmt.Errorf("emptying the bounding set: %w", err)
		}
	}
	if os.Geteuid() == 0 && !asRoot && has(permitted, unix.CAP_SETUID) && has(permitted, unix.CAP_SETGID) {
		if err := errors.Join(handOver(own, user), become(user)); err != nil {
			return fmt.Errorf("becoming the user %d: %w", user.UID, err)
		}
	}
	if !slices.Contains(keep, unix.CAP_BPF) && mapsNeedBPF(maskOf(keep)&permitted) {
		keep = append(keep, unix.CAP_BPF)
	}
	return errors.Join(limitTo(maskOf(keep)&permitted), refuseCalls())
}

// one is the user that slowpath becomes. several: no single user can do what the watch needs.
func one(users []User) (user User, several bool) {
	if len(users) == 0 {
		return Nobody, false
	}
	return users[0], slices.ContainsFunc(users, func(u User) bool { return u.UID != users[0].UID })
}

// handOver gives a user a directory and what is in it.
func handOver(dir string, u User) error {
	if dir == "" {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return fs.WalkDir(root.FS(), ".", func(name string, _ fs.DirEntry, err error) error {
		return errors.Join(err, root.Lchown(name, u.UID, u.GID))
	})
}

// become makes this process one of a user. Its capabilities stay permitted.
func become(u User) error {
	if u.UID == 0 {
		return nil
	}
	if err := onAllThreads(unix.SYS_PRCTL, unix.PR_SET_KEEPCAPS, 1); err != nil {
		return err
	}
	// Those of package syscall are for all threads.
	if err := syscall.Setgroups([]int{u.GID}); err != nil {
		return err
	}
	if err := syscall.Setresgid(u.GID, u.GID, u.GID); err != nil {
		return err
	}
	return syscall.Setresuid(u.UID, u.UID, u.UID)
}

// mapsNeedBPF reports whether this kernel refuses all of bpf(2) without CAP_BPF, and not only what loads: those before
// 5.19 do so with sysctl kernel.unprivileged_bpf_disabled. It tries on a thread that ends with that.
func mapsNeedBPF(mask uint64) bool {
	refused := make(chan bool, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() { // the main thread does not end
			defer runtime.UnlockOSThread()
			refused <- mapsNeedBPF(mask)
			return
		}
		header, data := sets(mask)
		if unix.Capset(header, &data[0]) != nil {
			refused <- false
			return
		}
		lookup := struct {
			fd         uint32
			_          uint32
			key, value uint64
			flags      uint64
		}{fd: ^uint32(0)} // no map: EBADF where maps may be read
		_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_MAP_LOOKUP_ELEM, uintptr(unsafe.Pointer(&lookup)),
			unsafe.Sizeof(lookup))
		refused <- errno == unix.EPERM
	}()
	return <-refused
}

// limitTo makes these capabilities the permitted and effective ones, and none inheritable.
func limitTo(mask uint64) error {
	header, data := sets(mask)
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(header)),
		uintptr(unsafe.Pointer(&data[0])), 0); errno != 0 {
		return fmt.Errorf("giving up capabilities: %w", errno)
	}
	return nil
}

func sets(mask uint64) (*unix.CapUserHeader, *[2]unix.CapUserData) {
	low, high := uint32(mask), uint32(mask>>32)
	return &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3},
		&[2]unix.CapUserData{{Effective: low, Permitted: low}, {Effective: high, Permitted: high}}
}

func permittedNow() (uint64, error) {
	header, data := sets(0)
	if err := unix.Capget(header, &data[0]); err != nil {
		return 0, fmt.Errorf("reading the capabilities of this process: %w", err)
	}
	return uint64(data[1].Permitted)<<32 | uint64(data[0].Permitted), nil
}

func has(mask uint64, capability int) bool { return mask>>capability&1 != 0 }

func maskOf(capabilities []int) (mask uint64) {
	for _, c := range capabilities {
		mask |= 1 << c
	}
	return mask
}

// onAllThreads makes a system call on each thread of this process.
func onAllThreads(call, a, b uintptr) error {
	_, _, errno := syscall.AllThreadsSyscall6(call, a, b, 0, 0, 0, 0)
	switch errno {
	case 0:
		return nil
	case syscall.ENOTSUP:
		return ErrBuild
	}
	return errno
}
