package hostfs

import (
	"fmt"
	"os"
	"path/filepath"
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
// more.
func DescriptorOf(fs Named, pid, fd int) (d Descriptor) {
	link := fmt.Sprintf("/proc/%d/fd/%d", pid, fd)
	path, err := fs.Readlink(link)
	if err != nil || strings.HasSuffix(path, " (deleted)") {
		return Descriptor{}
	}
	info, err := os.Stat(fs.Path(link))
	if err != nil {
		return Descriptor{}
	}
	name := ""
	if strings.HasPrefix(path, "/") {
		name = filepath.Base(path)
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
