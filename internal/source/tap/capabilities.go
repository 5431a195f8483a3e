//go:build linux

package tap

import "golang.org/x/sys/unix"

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
