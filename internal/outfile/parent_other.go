//go:build !linux

package outfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// parent is the directory of a path. Links in it are followed here: agents and watches of root are for Linux.
type parent struct{ path string }

func openParent(path string) (*parent, error) { return &parent{path}, nil }

func (p *parent) close() {}

func (p *parent) owner() (uid int, mode fs.FileMode, ok bool) {
	info, err := os.Stat(filepath.Dir(p.path))
	if err != nil {
		return 0, 0, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return int(st.Uid), info.Mode().Perm(), ok
}

func (p *parent) open(flags int) (*os.File, error) {
	return os.OpenFile(p.path, flags|syscall.O_NOFOLLOW, 0o600)
}

func (p *parent) remove() error { return os.Remove(p.path) }

func directory(path string) error { return os.MkdirAll(path, 0o700) }
