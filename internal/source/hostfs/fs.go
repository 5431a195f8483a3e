// Package hostfs is the files of a host as an effect that sources are handed: /proc, /sys, and the files of processes.
// A test hands them a directory with files of its own.
package hostfs

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// MaxFile bounds a file that is read whole, in bytes. /proc/PID/maps of 262144 mappings, which is what search engines
// are given, has about 34 MiB; with long names it may have a gigabyte.
const MaxFile = 64 << 20

// ErrTooLarge is matched by the error for a file that is larger than its bound.
var ErrTooLarge = errors.New("too large")

// FS is the files of a host. Names are absolute, as on a real host: "/proc/1/stat".
type FS interface {
	// Path is where a name really is, for libraries that read by themselves.
	Path(name string) string
	// ReadFile reads a file of /proc or /sys. One of more than MaxFile bytes is an error that matches ErrTooLarge: a
	// process decides how long its maps and its cmdline are.
	ReadFile(name string) ([]byte, error)
	// Open keeps a file open that is read again and again from its beginning.
	Open(name string) (File, error)
	// OpenRegular opens a regular file to read it once. Another process may have put anything there: all else is an
	// error, a pipe does not block the open, and a link as the last part of the name is followed only with follow.
	OpenRegular(name string, follow bool) (*os.File, error)
	Stat(name string) (os.FileInfo, error)
	// ReadDir gives the names in a directory, unsorted.
	ReadDir(name string) ([]string, error)
	Readlink(name string) (string, error)
}

// File is an open file of /proc or /sys.
type File interface {
	io.ReaderAt
	io.Closer
}

// Prompt is a File that can be read without announcing the system call to the Go runtime, whose monitor thread would be
// woken up each time. It is for files that the kernel fills without waiting for anything: stat and schedstat of a
// thread, not the counters of a cgroup or the memory of a process.
type Prompt interface {
	ReadPromptly(p []byte) (int, error) // from its beginning
}

// ReadRegular reads a regular file of another process, at most max bytes of it: what that process put there may be a
// pipe that nobody writes, a device, or a file without end.
func ReadRegular(fs FS, name string, max int64) ([]byte, error) {
	f, err := fs.OpenRegular(name, true)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, max+1))
	if err == nil && int64(len(b)) > max {
		err = tooLarge(name, max)
	}
	return b, err
}

func tooLarge(name string, max int64) error {
	return fmt.Errorf("reading %s: %w: it has more than %d bytes", name, ErrTooLarge, max)
}
