package recording

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"slowpath/internal/outfile"
)

// Copy writes what the recording has so far into a new file, as a recording that ends at a time in nanoseconds since
// the Unix epoch. The writer goes on meanwhile. The file is no larger than the recording may be; where it cannot be
// written, none is left.
func (w *Writer) Copy(path string, endNs int64) error {
	if err := w.Flush(); err != nil {
		return err
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("saving %s: %w", path, err)
	}
	f, err := newFile(path)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s exists already: name another file", path)
	}
	if err != nil {
		return fmt.Errorf("saving: %w: name a file in a directory that can be written", err)
	}
	f.Close()
	if err = w.copyInto(path); err == nil {
		err = w.endCopy(path, endNs)
	}
	if err != nil {
		outfile.Remove(path)
		return fmt.Errorf("saving %s: %w", path, err)
	}
	return nil
}

// copyInto reads by a connection of its own: it sees the file as it is when it begins, while rows are added.
func (w *Writer) copyInto(path string) error {
	db, err := openDB(w.path, "rw")
	if err != nil {
		return err
	}
	defer db.Close()
	return errors.Join(execute(db, "PRAGMA temp_store=MEMORY"), execute(db, "VACUUM INTO ?", path))
}

// endCopy writes what a writer writes when it closes its file.
func (w *Writer) endCopy(path string, endNs int64) error {
	db, err := openDB(path, "rw")
	if err != nil {
		return err
	}
	err = errors.Join(execute(db, insertMeta, MetaEnd, strconv.FormatInt(endNs, 10)), w.noteMissing(db))
	return errors.Join(err, db.Close())
}
