//go:build linux

package tap

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// allowed reports whether this process may load programs for tracing. It is asked first: without the right, the library
// takes the refusal of its first map for an old kernel.
func allowed() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return true // let the kernel say
	}
	has := func(capability int) bool { return data[capability/32].Effective&(1<<(capability%32)) != 0 }
	return has(unix.CAP_SYS_ADMIN) || has(unix.CAP_BPF) && has(unix.CAP_PERFMON)
}

// Drop gives up CAP_BPF on all threads of this process, for good: what is attached stays attached, and a process that
// was taken over could load nothing of its own. CAP_PERFMON stays, for runtimes of clients that are asked about their
// collections later. No source may be opened after this.
func Drop() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return fmt.Errorf("reading the capabilities of this process: %w", err)
	}
	const word, bit = unix.CAP_BPF / 32, uint32(1) << (unix.CAP_BPF % 32)
	if data[word].Permitted&bit == 0 {
		return nil
	}
	data[word].Effective &^= bit
	data[word].Permitted &^= bit
	data[word].Inheritable &^= bit
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)),
		uintptr(unsafe.Pointer(&data[0])), 0); errno != 0 {
		return fmt.Errorf("giving up CAP_BPF: %w", errno)
	}
	return nil
}
