package outfile

import (
	"fmt"
	"os"
	"path/filepath"
)

// OpenTwice is an error unless this process has the file open by another descriptor, too. SQLite opens files by their
// paths, in which somebody may have replaced a directory by a link since the file was made: nothing is written through
// it before this was asked.
func OpenTwice(file *os.File) error {
	own, err := file.Stat()
	if err != nil {
		return err
	}
	const all = "/proc/self/fd"
	entries, err := os.ReadDir(all)
	if err != nil {
		return nil // a system without /proc
	}
	n := 0
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(all, e.Name())); err == nil && os.SameFile(info, own) {
			n++
		}
	}
	if n < 2 {
		return fmt.Errorf("%s was replaced while it was opened: name a place where nobody else writes", file.Name())
	}
	return nil
}
