//go:build linux

package tap

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// fileCalls are system calls whose first argument is the file that they are about.
var fileCalls = map[string]bool{
	"read": true, "write": true, "pread64": true, "pwrite64": true, "writev": true,
	"fsync": true, "fdatasync": true,
	"sync_file_range": true, "fallocate": true,
}

// openFile names what a process has open under a number: a regular file, without its directory, and the block device
// that has it. It is asked up to drainEvery after the call: a file that was closed or removed meanwhile has no name any
// more.
func openFile(pid, fd int) (file, device string) {
	link := fmt.Sprintf("/proc/%d/fd/%d", pid, fd)
	path, err := os.Readlink(link)
	if err != nil || strings.HasSuffix(path, " (deleted)") {
		return "", ""
	}
	var st syscall.Stat_t
	if err := syscall.Stat(link, &st); err != nil || st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return "", ""
	}
	dev := uint64(st.Dev) // its type differs by architecture
	// File systems of several devices (btrfs, overlay) have a number that is none of a device.
	at, err := os.Readlink(fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(dev), unix.Minor(dev)))
	if err == nil {
		device = filepath.Base(at)
	}
	return strings.Map(printable, filepath.Base(path)), device
}
