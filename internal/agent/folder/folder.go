// Package folder is a directory of the agent's data. What is in it is reached through the open directory, by one name
// at a time and through no link: who can write there cannot have the agent read or write files elsewhere, by means of
// capabilities that they do not have.
package folder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"slowpath/internal/format"
	"slowpath/internal/outfile"
)

// Folder is an open directory. It is safe for concurrent use.
type Folder struct {
	root  atomic.Pointer[os.Root]
	path  string
	again func() (*os.Root, error)
}

// Open opens a directory that somebody named, and makes it and those above it if they are not there.
func Open(path string) (*Folder, error) {
	return opened(path, func() (*os.Root, error) {
		if err := outfile.Directory(path); err != nil {
			return nil, err
		}
		return os.OpenRoot(path)
	})
}

// At opens a directory that is there, as Open does.
func At(path string) (*Folder, error) {
	return opened(path, func() (*os.Root, error) { return os.OpenRoot(path) })
}

// Sub opens a directory in this one, and makes it if it is not there.
func (f *Folder) Sub(name string) (*Folder, error) {
	return opened(filepath.Join(f.path, name), func() (*os.Root, error) {
		if _, err := f.Lstat("."); err != nil {
			return nil, err
		}
		if err := f.Mkdir(name); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		return f.enter(name)
	})
}

func opened(path string, open func() (*os.Root, error)) (*Folder, error) {
	f := &Folder{path: path, again: open}
	return f, f.Again()
}

// Again opens it once more, for when somebody removed it.
func (f *Folder) Again() error {
	root, err := f.again()
	if err == nil {
		f.root.Store(root) // an earlier one may be in use: it is closed when it is not any more
	}
	return err
}

// Close closes it.
func (f *Folder) Close() error { return f.root.Load().Close() }

// Path is where it was opened, or where a name in it was then: for people, and for what takes paths alone. Such are
// SQLite, whose files Holds checks, and programs that have no capability.
func (f *Folder) Path(names ...string) string {
	return filepath.Join(append([]string{f.path}, names...)...)
}

// errLink says that a name is a link, or was replaced while it was opened.
var errLink = errors.New("it is a link: remove it")

// Existing opens a directory that is in this one.
func (f *Folder) Existing(name string) (*Folder, error) {
	return opened(filepath.Join(f.path, name), func() (*os.Root, error) { return f.enter(name) })
}

// enter opens a directory by its name. os.Root follows links that stay inside of it: what is opened must be what has
// that name.
func (f *Folder) enter(name string) (*os.Root, error) {
	if err := oneName("opening", name); err != nil {
		return nil, err
	}
	sub, err := f.root.Load().OpenRoot(name)
	if err != nil {
		return nil, err
	}
	info, err := sub.Stat(".")
	if err == nil {
		err = f.is(name, info)
	}
	if err != nil {
		sub.Close()
		return nil, err
	}
	return sub, nil
}

// is: this is what has the name.
func (f *Folder) is(name string, info os.FileInfo) error {
	there, err := f.root.Load().Lstat(name)
	if err == nil && !os.SameFile(info, there) {
		err = &fs.PathError{Op: "opening", Path: name, Err: errLink}
	}
	return err
}

func oneName(op, name string) error {
	if name == "." || filepath.Base(name) != name || !filepath.IsLocal(name) {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	return nil
}

// OpenFile opens a regular file, and waits for nobody, as a FIFO would. The flags are those of os.OpenFile.
func (f *Folder) OpenFile(name string, flags int) (*os.File, error) {
	if err := oneName("opening", name); err != nil {
		return nil, err
	}
	const privately = 0o600
	file, err := f.root.Load().OpenFile(name, flags|syscall.O_NONBLOCK, privately)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "opening", Path: name, Err: errors.New("it is no regular file: remove it")}
	}
	if err == nil {
		err = f.is(name, info)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// Open opens a file to read it.
func (f *Folder) Open(name string) (*os.File, error) { return f.OpenFile(name, os.O_RDONLY) }

// Create makes a file, for this user alone, that must not be there: its error is then fs.ErrExist.
func (f *Folder) Create(name string) (*os.File, error) {
	return f.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

// Read reads a file of so many bytes at most.
func (f *Folder) Read(name string, most int64) ([]byte, error) {
	file, err := f.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(text)) > most {
		return nil, fmt.Errorf("%s has more than %s", name, format.Bytes(most))
	}
	return text, err
}

// Replace writes a file such that a crash leaves the old or the new one.
func (f *Folder) Replace(name string, text []byte) error {
	unfinished := "." + name + ".part"
	if err := f.Remove(unfinished); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := f.Create(unfinished)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = f.Rename(unfinished, name)
	}
	if err != nil {
		_ = f.Remove(unfinished)
		return err
	}
	f.Sync()
	return nil
}

// Sync makes the names in it safe on disk.
func (f *Folder) Sync() {
	if d, err := f.root.Load().Open("."); err == nil {
		_ = d.Sync()
		d.Close()
	}
}

// Entries are what is in it, without an order: an error where that is more than so many.
func (f *Folder) Entries(most int) ([]fs.DirEntry, error) {
	d, err := f.root.Load().Open(".")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.ReadDir(most + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(entries) > most {
		return nil, fmt.Errorf("%s has more than %d entries: name a directory of its own", f.path, most)
	}
	return entries, nil
}

// Lstat describes what has a name, a link itself. The name "." is the directory.
func (f *Folder) Lstat(name string) (os.FileInfo, error) { return f.root.Load().Lstat(name) }

// Size is that of a regular file in bytes; 0: there is none.
func (f *Folder) Size(name string) int64 {
	info, err := f.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}

// Mkdir makes a directory that must not be there.
func (f *Folder) Mkdir(name string) error {
	if err := oneName("making", name); err != nil {
		return err
	}
	return f.root.Load().Mkdir(name, 0o700)
}

// Rename gives a file or directory another name, of which it takes the place.
func (f *Folder) Rename(from, to string) error { return f.root.Load().Rename(from, to) }

// Publish gives a finished file its name, in which it replaces nothing.
func (f *Folder) Publish(unfinished, name string) error {
	file, err := f.OpenFile(unfinished, os.O_RDWR)
	if err != nil {
		return err
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return err
	}
	root := f.root.Load()
	err = root.Link(unfinished, name)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = root.Rename(unfinished, name) // there are file systems without hard links
	}
	if err == nil {
		f.Sync()
	}
	return err
}

// Remove removes a file, a link or an empty directory.
func (f *Folder) Remove(name string) error { return f.root.Load().Remove(name) }

// RemoveAll removes a name with all that is in it.
func (f *Folder) RemoveAll(name string) error { return f.root.Load().RemoveAll(name) }
