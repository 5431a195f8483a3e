package folder

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"slowpath/internal/format"
)

// CheckOwners refuses a directory that anybody else than root and this user can write, or put another one in the place
// of. The error ends in the fix.
func CheckOwners(path string, uid int) error {
	path, err := filepath.Abs(path)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	for dir := path; err == nil; dir = filepath.Dir(dir) {
		var info fs.FileInfo
		if info, err = os.Lstat(dir); err != nil {
			break
		}
		if err := checkOwner(info, dir, dir == path, uid); err != nil {
			return err
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
	return err
}

func checkOwner(info fs.FileInfo, dir string, own bool, uid int) error {
	const others = 0o022
	st, ok := info.Sys().(*syscall.Stat_t)
	theirs := ok && st.Uid != 0 && int(st.Uid) != uid
	writable := info.Mode()&others != 0 && (own || info.Mode()&fs.ModeSticky == 0)
	fix := "chmod go-w " + format.Shell(dir)
	switch {
	case own && theirs:
		return fmt.Errorf("it belongs to the user %d, and slowpath runs as %d; chown %d %s, or name another directory",
			st.Uid, uid, uid, format.Shell(dir))
	case own && writable:
		return fmt.Errorf("other users can write there; %s", fix)
	case theirs:
		return fmt.Errorf("the user %d, whose %s is, can put another directory in its place; name one that is below "+
			"directories of root and of its own user, such as /var/lib/slowpath", st.Uid, dir)
	case writable:
		return fmt.Errorf("other users can write %s, and put another directory in its place; %s, or name another "+
			"directory", dir, fix)
	}
	return nil
}
