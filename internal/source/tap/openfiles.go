//go:build linux

package tap

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// fileCalls are system calls whose first argument is the file that they are about.
var fileCalls = map[string]bool{
	"read": true, "write": true, "pread64": true, "pwrite64": true, "writev": true,
	"fsync": true, "fdatasync": true,
	"sync_file_range": true, "fallocate": true,
}

// openFile names what a process has open under a number: a regular file, without its directory, and the block device
// that has it. It is read up to Options.DrainEvery after the call: a file that was closed or removed meanwhile has no
// name any more.
func openFile(files Files, pid, fd int) (file, device string) {
	link := fmt.Sprintf("/proc/%d/fd/%d", pid, fd)
	path, err := files.Readlink(link)
	if err != nil || strings.HasSuffix(path, " (deleted)") {
		return "", ""
	}
	var st unix.Stat_t
	if err := unix.Stat(files.Path(link), &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return "", ""
	}
	dev := uint64(st.Dev) // its type differs by architecture
	// File systems of several devices (btrfs, overlay) have a number that is not one of a device.
	at, err := files.Readlink(fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(dev), unix.Minor(dev)))
	if err == nil {
		device = filepath.Base(at)
	}
	return strings.Map(printable, filepath.Base(path)), device
}

// mappedFiles are files that a process has mapped, chosen by their last name: their paths on this host. Its errors are
// those of reading /proc/PID/maps, which may be too large.
func mappedFiles(files Files, pid uint32, want func(base string) bool) (out []string, err error) {
	maps, err := files.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for line := range bytes.Lines(maps) {
		i := bytes.IndexByte(line, '/')
		if i < 0 {
			continue
		}
		name := string(bytes.TrimSuffix(line[i:], []byte("\n"))) // a blank at its end is part of it
		if !want(filepath.Base(name)) || seen[name] {
			continue
		}
		seen[name] = true
		path := fmt.Sprintf("/proc/%d/root%s", pid, name)
		if _, replaced := strings.CutSuffix(name, " (deleted)"); replaced { // by an upgrade, while it runs
			span, _, _ := bytes.Cut(line, []byte(" "))
			path = fmt.Sprintf("/proc/%d/map_files/%s", pid, span)
		}
		out = append(out, files.Path(path))
	}
	return out, nil
}
