package hostfs

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Root is the files below a directory; the zero value is those of this host.
type Root struct {
	Dir string
}

// Path is name below the root directory.
func (r Root) Path(name string) string {
	if r.Dir == "" {
		return name
	}
	return filepath.Join(r.Dir, name)
}

// ReadFile reads a whole file of at most MaxFile bytes.
func (r Root) ReadFile(name string) ([]byte, error) { return readWhole(r.Path(name)) }

// Open opens a file for repeated reading.
func (r Root) Open(name string) (File, error) {
	f, err := openRaw(r.Path(name))
	if err != nil {
		return nil, err
	}
	return f, nil
}

// OpenRegular opens a regular file.
func (r Root) OpenRegular(name string, follow bool) (*os.File, error) {
	flags := os.O_RDONLY | syscall.O_NONBLOCK
	if !follow {
		flags |= syscall.O_NOFOLLOW
	}
	f, err := os.OpenFile(r.Path(name), flags, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("opening %s: not a regular file", name)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Stat describes a file.
func (r Root) Stat(name string) (os.FileInfo, error) { return os.Stat(r.Path(name)) }

// ReadDir gives the names in a directory.
func (r Root) ReadDir(name string) ([]string, error) {
	d, err := os.Open(r.Path(name))
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

// Readlink reads a symbolic link.
func (r Root) Readlink(name string) (string, error) { return os.Readlink(r.Path(name)) }

// NamespacePID is the number of a process in its own PID namespace: the last one of NSpid in /proc/PID/status. It is
// pid itself where that cannot be read.
func NamespacePID(fs FS, pid int) int {
	status, err := fs.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return pid
	}
	for line := range strings.Lines(string(status)) {
		list, ok := strings.CutPrefix(line, "NSpid:")
		if !ok {
			continue
		}
		if pids := strings.Fields(list); len(pids) > 0 {
			if n, err := strconv.Atoi(pids[len(pids)-1]); err == nil {
				return n
			}
		}
	}
	return pid
}
