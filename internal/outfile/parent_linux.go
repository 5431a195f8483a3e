package outfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// parent is the directory of a path, which is open, and the last name of the path.
type parent struct {
	path, name string
	dirs       []int // open, each in the one before; the last one is the directory
	base       string
	links      int
}

const maxLinks = 40 // as many as the kernel follows

// openParent opens the directory that a path is in. It is looked up one name at a time: a link is followed only where
// nobody but root and this user can have made it, or can replace it meanwhile.
func openParent(path string) (*parent, error) {
	dir, name := cut(path)
	if name == "" {
		return nil, &fs.PathError{Op: "open", Path: path, Err: unix.EISDIR}
	}
	p := &parent{path: path, name: name}
	if err := p.begin(path); err != nil {
		return nil, err
	}
	if err := p.enterAll(dir, false); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// cut is the directory and the last name of a path; the name is empty where the path can only be a directory.
func cut(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/') + 1
	if name = path[i:]; name == "." || name == ".." {
		name = ""
	}
	return path[:i], name
}

// begin opens where a path begins.
func (p *parent) begin(path string) error {
	base := "."
	if strings.HasPrefix(path, "/") {
		base = "/"
	}
	fd, err := unix.Open(base, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return p.failed(err)
	}
	p.close()
	p.dirs, p.base = []int{fd}, base
	return nil
}

func (p *parent) close() {
	for _, fd := range p.dirs {
		unix.Close(fd)
	}
	p.dirs = nil
}

func (p *parent) dir() int { return p.dirs[len(p.dirs)-1] }

func (p *parent) failed(err error) error {
	return &fs.PathError{Op: "open", Path: p.path, Err: err}
}

// enterAll enters the directories of a path. Those that are not there are made, if make says so.
func (p *parent) enterAll(path string, make bool) error {
	for name := range strings.SplitSeq(path, "/") {
		var err error
		switch {
		case name == "" || name == ".":
		case name == "..":
			err = p.up()
		default:
			err = p.enter(name, make)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// up goes to the directory above.
func (p *parent) up() error {
	if n := len(p.dirs); n > 1 {
		unix.Close(p.dirs[n-1])
		p.dirs = p.dirs[:n-1]
		return nil
	}
	fd, err := unix.Openat(p.dir(), "..", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return p.failed(err)
	}
	unix.Close(p.dirs[0])
	p.dirs[0] = fd
	return nil
}

func (p *parent) enter(name string, make bool) error {
	fd, err := unix.Openat(p.dir(), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) && make {
		if err := p.mkdir(name); err != nil {
			return err
		}
		fd, err = unix.Openat(p.dir(), name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return p.failed(err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return p.failed(err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		p.dirs = append(p.dirs, fd)
		return nil
	case unix.S_IFLNK:
		defer unix.Close(fd)
		return p.follow(name, fd, st.Uid, make)
	}
	unix.Close(fd)
	return p.failed(unix.ENOTDIR)
}

// follow goes where a link leads.
func (p *parent) follow(name string, fd int, owner uint32, make bool) error {
	if p.links++; p.links > maxLinks {
		return p.failed(unix.ELOOP)
	}
	if owner != 0 && int(owner) != os.Geteuid() {
		return fmt.Errorf("%s: %s is a link of another user: name the place that it leads to", p.path, name)
	}
	target := [unix.PathMax]byte{}
	n, err := unix.Readlinkat(fd, "", target[:])
	if err == nil && n == len(target) {
		err = unix.ENAMETOOLONG
	}
	if err != nil {
		return p.failed(err)
	}
	to := string(target[:n])
	if strings.HasPrefix(to, "/") {
		if err := p.begin("/"); err != nil {
			return err
		}
	}
	return p.enterAll(to, make)
}

// mkdir makes a directory. What root makes for who called sudo is theirs.
func (p *parent) mkdir(name string) error {
	uid, gid, ok := p.caller()
	if err := unix.Mkdirat(p.dir(), name, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
		return p.failed(err)
	} else if err != nil || !ok {
		return nil // where it is there meanwhile, it is looked at as any other
	}
	fd, err := unix.Openat(p.dir(), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return p.failed(err)
	}
	made := os.NewFile(uintptr(fd), name)
	defer made.Close()
	// Somebody else may have put another directory in its place, which is then not empty or not root's.
	if names, err := made.Readdirnames(1); len(names) > 0 || !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: somebody else writes there: name another place", p.path)
	}
	return made.Chown(uid, gid)
}

// owner is that of the directory, and its mode.
func (p *parent) owner() (uid int, mode fs.FileMode, ok bool) {
	var st unix.Stat_t
	if unix.Fstat(p.dir(), &st) != nil {
		return 0, 0, false
	}
	return int(st.Uid), fs.FileMode(st.Mode & 0o777), true
}

// open opens the name in the directory, through no link.
func (p *parent) open(flags int) (*os.File, error) {
	fd, err := unix.Openat(p.dir(), p.name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, p.failed(err)
	}
	return os.NewFile(uintptr(fd), p.path), nil
}

// remove removes the file of the name.
func (p *parent) remove() error { return unix.Unlinkat(p.dir(), p.name, 0) }

// directory opens a directory and those above it, and makes those that are not there.
func directory(path string) error {
	p := &parent{path: path}
	if err := p.begin(path); err != nil {
		return err
	}
	defer p.close()
	return p.enterAll(path, true)
}
