package hostfs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Descriptor is what a process has open under a number. At most one of File and Other is known.
type Descriptor struct {
	File   string // a regular file, without its directory
	Device string // the block device that has it
	Other  string // what it is else: "its standard output, a pipe"
}

var takesDescriptor = map[string]bool{
	"read": true, "write": true, "pread64": true, "pwrite64": true, "writev": true, "fsync": true, "fdatasync": true,
	"sync_file_range": true, "fallocate": true, "ftruncate": true, "flock": true, "fcntl": true, "ioctl": true,
	"sendto": true, "sendmsg": true, "connect": true,
}

// TakesDescriptor reports whether the first argument of a system call, by its name, is the descriptor that it is about.
func TakesDescriptor(call string) bool { return takesDescriptor[call] }

// Named reads names and links, as FS does.
type Named interface {
	Path(name string) string
	Readlink(name string) (string, error)
}

// DescriptorOf is what a process has open under a number now: a file that was closed or removed since has no name any
// more. Of a file that another host or program serves only the name is given: who asks for more may wait for it as long
// as the process does.
func DescriptorOf(fs FS, pid, fd int) (d Descriptor) {
	link := fmt.Sprintf("/proc/%d/fd/%d", pid, fd)
	path, err := fs.Readlink(link)
	if err != nil || strings.HasSuffix(path, " (deleted)") {
		return Descriptor{}
	}
	name := ""
	if strings.HasPrefix(path, "/") {
		name = filepath.Base(path)
		if mayHang(fs, pid, fd) {
			return Descriptor{File: cleanName(name)}
		}
	}
	info, err := os.Stat(fs.Path(link))
	if err != nil {
		return Descriptor{}
	}
	return NewDescriptor(fd, info.Mode(), name, func() string { return blockDevice(fs, info) })
}

// NewDescriptor is of a number under which something of this type and name is open. Pipes and sockets have no name.
// device gives the block device of a regular file.
func NewDescriptor(fd int, mode os.FileMode, name string, device func() string) (d Descriptor) {
	name = cleanName(name)
	switch {
	case mode.IsRegular():
		return Descriptor{File: name, Device: device()}
	case mode&os.ModeNamedPipe != 0 && name == "":
		d.Other = "a pipe"
	case mode&os.ModeNamedPipe != 0:
		d.Other = "the FIFO " + name
	case mode&os.ModeSocket != 0:
		d.Other = "a socket"
	case mode&os.ModeCharDevice != 0:
		d.Other = "the device " + name
	default:
		return Descriptor{}
	}
	switch fd {
	case 1:
		d.Other = "its standard output, " + d.Other
	case 2:
		d.Other = "its standard error, " + d.Other
	}
	return d
}

// served are file systems whose files another host or program serves, by how their types begin.
var served = []string{
	"nfs", "cifs", "smb", "9p", "ceph", "afs", "lustre", "gfs2", "ocfs2", "fuse", "virtiofs", "autofs",
}

// mayHang reports whether a file is on such a file system, or may be.
func mayHang(fs FS, pid, fd int) bool {
	info, err := fs.ReadFile(fmt.Sprintf("/proc/%d/fdinfo/%d", pid, fd))
	if err != nil {
		return true
	}
	_, id, _ := strings.Cut(string(info), "mnt_id:")
	id, _, _ = strings.Cut(strings.TrimSpace(id), "\n")
	mounts, err := fs.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
	if err != nil || id == "" {
		return true
	}
	for line := range strings.Lines(string(mounts)) { // proc_pid_mountinfo(5)
		if !strings.HasPrefix(line, id+" ") {
			continue
		}
		_, of, _ := strings.Cut(line, " - ")
		return slices.ContainsFunc(served, func(t string) bool { return strings.HasPrefix(of, t) })
	}
	return true // of another mount namespace
}
