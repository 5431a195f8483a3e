// Package outfile makes the files that slowpath writes where the user named a place. slowpath may be root there, and
// the directory somebody else's, who may have put a link in the way: no link is followed, and only the user can read
// what is written. What root writes for somebody who called sudo belongs to them, where they can reach it.
package outfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Create makes a new file, that must not be there: its error is then os.ErrExist.
func Create(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if uid, gid, ok := caller(path); ok {
		_ = f.Chown(uid, gid) // where that is not allowed it stays root's
	}
	return f, nil
}

// SudoCaller is the user for whom sudo runs this program as root; ok is false where it does not.
func SudoCaller() (uid, gid int, ok bool) {
	if os.Geteuid() != 0 {
		return 0, 0, false
	}
	uid, err := strconv.Atoi(os.Getenv("SUDO_UID"))
	if err != nil || uid <= 0 {
		return 0, 0, false
	}
	gid, err = strconv.Atoi(os.Getenv("SUDO_GID"))
	return uid, gid, err == nil && gid >= 0
}

// caller is the user who called sudo, where a file of root is to be theirs: in a directory of theirs, or where anybody
// may make files (/tmp). In directories of root or of others it is root's.
func caller(path string) (uid, gid int, ok bool) {
	uid, gid, ok = SudoCaller()
	if !ok {
		return 0, 0, false
	}
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return 0, 0, false
	}
	const anybody = 0o002
	st, ok := dir.Sys().(*syscall.Stat_t)
	return uid, gid, ok && (int(st.Uid) == uid || dir.Mode()&anybody != 0)
}

// Overwrite makes a file, or empties the one that is there if it is a regular file of this user with no other name.
func Overwrite(path string) (*os.File, error) {
	f, err := Create(path)
	if !errors.Is(err, os.ErrExist) {
		return f, err
	}
	f, err = os.OpenFile(path, os.O_WRONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%s is a link: remove it, or name another place", path)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = ours(path, info)
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Write writes a file in place of the one of that name.
func Write(path string, write func(io.Writer) error) error {
	f, err := Overwrite(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

func ours(path string, info os.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file: name another place", path)
	case ok && int(st.Uid) != os.Geteuid() && !ofCaller(path, st):
		return fmt.Errorf("%s belongs to another user: remove it, or name another place", path)
	case ok && st.Nlink > 1:
		return fmt.Errorf("%s is a file with another name, too (a hard link): remove it, or name another place", path)
	}
	return nil
}

func ofCaller(path string, st *syscall.Stat_t) bool {
	uid, _, ok := caller(path)
	return ok && int(st.Uid) == uid
}

// makeDirectories makes those that are not there.
func makeDirectories(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return os.MkdirAll(path, 0o700) // its error where this is no directory
	}
	if err := makeDirectories(filepath.Dir(path)); err != nil {
		return err
	}
	uid, gid, ok := caller(path)
	if err := os.Mkdir(path, 0o700); err != nil || !ok {
		return err
	}
	made, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer made.Close()
	// Somebody else may have put another directory in its place, which is then not empty or not root's.
	if names, err := made.Readdirnames(1); len(names) > 0 || !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: somebody else writes there: name another place", path)
	}
	return made.Chown(uid, gid)
}

// Directory makes a directory and those above it. One that is there may be a link only if root or this user made it.
// What root makes for somebody who called sudo belongs to them, as files do.
func Directory(path string) error {
	if err := makeDirectories(filepath.Clean(path)); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if ok && info.Mode()&os.ModeSymlink != 0 && st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s is a link of another user: name another place", path)
	}
	return nil
}
