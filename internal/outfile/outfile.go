// Package outfile makes the files that slowpath writes where the user named a place. slowpath may be root there, and
// a directory on the way somebody else's, who may have put a link there: only links of root and of this user are
// followed, none in the place of the file, and only the user can read what is written. What root writes for somebody
// who called sudo belongs to them, where they can reach it.
package outfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"
)

// Create makes a new file, that must not be there: its error is then os.ErrExist.
func Create(path string) (*os.File, error) {
	in, err := openParent(path)
	if err != nil {
		return nil, err
	}
	defer in.close()
	return in.create()
}

func (p *parent) create() (*os.File, error) {
	f, err := p.open(os.O_WRONLY | os.O_CREATE | os.O_EXCL)
	if err != nil {
		return nil, err
	}
	if uid, gid, ok := p.caller(); ok {
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
func (p *parent) caller() (uid, gid int, ok bool) {
	if uid, gid, ok = SudoCaller(); !ok {
		return 0, 0, false
	}
	const anybody = 0o002
	owner, mode, ok := p.owner()
	return uid, gid, ok && (owner == uid || mode&anybody != 0)
}

// Overwrite makes a file, or empties the one that is there if it is a regular file of this user with no other name.
func Overwrite(path string) (*os.File, error) {
	in, err := openParent(path)
	if err != nil {
		return nil, err
	}
	defer in.close()
	f, err := in.create()
	if !errors.Is(err, os.ErrExist) {
		return f, err
	}
	f, err = in.open(os.O_WRONLY | syscall.O_NONBLOCK)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%s is a link: remove it, or name another place", path)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = in.ours(info)
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

// Remove removes a file that was made by this package.
func Remove(path string) error {
	in, err := openParent(path)
	if err != nil {
		return err
	}
	defer in.close()
	return in.remove()
}

// Write writes a file in place of the one of that name.
func Write(path string, write func(io.Writer) error) error {
	f, err := Overwrite(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

func (p *parent) ours(info os.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file: name another place", p.path)
	case ok && int(st.Uid) != os.Geteuid() && !p.ofCaller(st):
		return fmt.Errorf("%s belongs to another user: remove it, or name another place", p.path)
	case ok && st.Nlink > 1:
		return fmt.Errorf("%s is a file with another name, too (a hard link): remove it, or name another place", p.path)
	}
	return nil
}

func (p *parent) ofCaller(st *syscall.Stat_t) bool {
	uid, _, ok := p.caller()
	return ok && int(st.Uid) == uid
}

// Directory makes a directory and those above it. What root makes for somebody who called sudo belongs to them, as
// files do.
func Directory(path string) error { return directory(path) }
