package agent

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"slowpath/internal/agent/folder"
	"slowpath/internal/format"
	"slowpath/internal/outfile"
)

// ErrInUse says that another agent runs with the same directory.
var ErrInUse = errors.New("the directory is in use")

// directory is where an agent keeps its data, locked as long as it runs.
type directory struct {
	folder *folder.Folder
	temp   *folder.Folder
	lock   *os.File
}

// MakeDirectory makes the directory of --data for its owner alone.
func MakeDirectory(path string) error {
	if err := outfile.Directory(path); err != nil {
		return fmt.Errorf("the directory of --data: %w; name another, or make it: install -d -m 700 %s", err,
			format.Shell(path))
	}
	return nil
}

// openDirectory locks a directory that nobody else can write. The lock ends with the process, however that ends.
func openDirectory(path string) (*directory, error) {
	if err := MakeDirectory(path); err != nil {
		return nil, err
	}
	if err := folder.CheckOwners(path, os.Geteuid()); err != nil {
		return nil, fmt.Errorf("--data %s: %w", path, err)
	}
	in, err := folder.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--data %s: %w; name a directory that slowpath may read", path, err)
	}
	d := &directory{folder: in}
	if d.lock, err = in.OpenFile(lockName, os.O_RDWR|os.O_CREATE); err != nil {
		return nil, errors.Join(fmt.Errorf("--data %s: %w; give slowpath a directory that it may write", path, err),
			d.close())
	}
	if err := unix.Flock(int(d.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer d.close()
		return nil, fmt.Errorf("--data %s: %w: another slowpath serve%s runs there; stop it, or name another directory",
			path, ErrInUse, holder(d.lock))
	}
	if err = in.RemoveAll(tempName); err == nil {
		d.temp, err = in.Sub(tempName)
	}
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	if d.lock.Truncate(0) == nil { // else the disk is full or fails: the lock holds all the same
		_, _ = fmt.Fprintf(d.lock, "%d\n", os.Getpid())
	}
	return d, nil
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

func (d *directory) close() error {
	var errs []error
	if d.lock != nil {
		errs = append(errs, d.lock.Close())
	}
	if d.temp != nil {
		errs = append(errs, d.temp.Close())
	}
	return errors.Join(append(errs, d.folder.Close())...)
}

// gone says that the directory is not there any more, or another one; empty: it is.
func (d *directory) gone() string {
	locked, err := d.lock.Stat()
	if err == nil {
		var now os.FileInfo
		if now, err = os.Lstat(d.folder.Path(lockName)); err == nil && os.SameFile(locked, now) {
			return ""
		}
	}
	why := "it was replaced"
	if err != nil {
		why = err.Error()
	}
	return fmt.Sprintf("the data directory %s is gone (%s): incidents are not kept any more; start slowpath again",
		d.folder.Path(), why)
}

// Kept are the names in the directory of an agent, but for those that begin as that of the history.
func Kept() []string {
	return []string{lockName, ringName, incidentsName, historyName, marksName, tempName, sentName}
}

const (
	lockName      = "lock"
	ringName      = "ring"
	incidentsName = "incidents"
	historyName   = "history.db"
	marksName     = "marks.json"
	tempName      = "tmp"
	sentName      = "sent" // up to where all was sent to others
)
