package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"slowpath/internal/format"
)

// ErrInUse says that another agent runs with the same directory.
var ErrInUse = errors.New("the directory is in use")

// directory is where an agent keeps its data, locked as long as it runs.
type directory struct {
	path string
	lock *os.File
}

// MakeDirectory makes the directory of --data with what is in it for its owner alone.
func MakeDirectory(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("the directory of --data: %w; name another, or make it: install -d -m 700 %s", err,
			format.Shell(path))
	}
	return nil
}

// openDirectory locks a directory. The lock ends with the process, however that ends.
func openDirectory(path string) (*directory, error) {
	if err := MakeDirectory(path); err != nil {
		return nil, err
	}
	name := filepath.Join(path, lockName)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w; give slowpath a directory that it may write: --data DIR", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		return nil, fmt.Errorf("--data %s: %w: another slowpath serve%s runs there; stop it, or name another directory",
			path, ErrInUse, holder(f))
	}
	temp := filepath.Join(path, tempName)
	if err := errors.Join(os.RemoveAll(temp), os.MkdirAll(temp, 0o700)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if f.Truncate(0) == nil { // else the disk is full or fails: the lock holds all the same
		_, _ = fmt.Fprintf(f, "%d\n", os.Getpid())
	}
	return &directory{path, f}, nil
}

// holder is the process that holds a lock, as it wrote it.
func holder(f *os.File) string {
	b := make([]byte, 20)
	n, _ := f.ReadAt(b, 0)
	if pid := strings.TrimSpace(string(b[:n])); pid != "" && strings.Trim(pid, "0123456789") == "" {
		return " (pid " + pid + ")"
	}
	return ""
}

func (d *directory) in(names ...string) string {
	return filepath.Join(append([]string{d.path}, names...)...)
}

func (d *directory) close() error { return d.lock.Close() }

// Kept are the names in the directory of an agent, but for those that begin as that of the history.
func Kept() []string {
	return []string{lockName, ringName, incidentsName, historyName, marksName, tempName}
}

const (
	lockName      = "lock"
	ringName      = "ring"
	incidentsName = "incidents"
	historyName   = "history.db"
	marksName     = "marks.json"
	tempName      = "tmp"
)
