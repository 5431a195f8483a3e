//go:build linux

package serving

import (
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"slowpath/internal/agent"
	"slowpath/internal/agent/folder"
	"slowpath/internal/cli"
	"slowpath/internal/format"
	"slowpath/internal/source/privilege"
)

// agentUser is the user of the packages.
const agentUser = "slowpath"

// stay gives up what the agent does not need. Root becomes the owner of the directory, or where that is root its own
// user, else nobody.
func (s *serving) stay() error {
	if err := ofAgent(s.Data); err != nil {
		return err
	}
	err := privilege.Able()
	if errors.Is(err, privilege.ErrBuild) {
		if s.app.OnTerminal() { // a build for tests has cgo
			s.log.Warn("slowpath keeps more privileges than it needs: %v", err)
		}
		return nil
	}
	u, handOver := privilege.User{}, ""
	if os.Geteuid() == 0 {
		if u, handOver, err = ownerOf(s.Data); err != nil {
			return err
		}
		if err := reachable(s.Data, u); err != nil {
			return err
		}
		if err := folder.CheckOwners(s.Data, u.UID); err != nil {
			return cli.Usagef("--data %s: %w", s.Data, err)
		}
	}
	return privilege.Stay(u, handOver)
}

// ofAgent refuses a directory in which others keep files.
func ofAgent(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return cli.Usagef("--data %s: %w; name a directory that slowpath may read", dir, err)
	}
	for _, e := range entries {
		name := e.Name()
		if !slices.Contains(agent.Kept(), name) && !strings.HasPrefix(name, "history.db") && name != "lost+found" {
			return cli.Usagef("--data %s: %s is not slowpath's: name a directory that is empty, or not there", dir,
				format.Name(name))
		}
	}
	return nil
}

// ownerOf is who an agent of root becomes, and the directory that is handed over to that user, if it is.
func ownerOf(dir string) (u privilege.User, handOver string, err error) {
	info, err := os.Stat(dir)
	if err != nil {
		return u, "", cli.Usagef("--data %s: %w", dir, err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 {
		return privilege.User{UID: int(st.Uid), GID: int(st.Gid)}, "", nil
	}
	u = privilege.Nobody
	if known, err := user.Lookup(agentUser); err == nil {
		uid, badUID := strconv.Atoi(known.Uid)
		gid, badGID := strconv.Atoi(known.Gid)
		if badUID == nil && badGID == nil && uid != 0 {
			u = privilege.User{UID: uid, GID: gid}
		}
	}
	return u, dir, nil
}

// reachable refuses a directory below one that the user may not enter: incidents are judged by a process without any
// capability.
func reachable(dir string, u privilege.User) error {
	path, err := filepath.Abs(dir)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	for parent := filepath.Dir(path); err == nil; parent = filepath.Dir(parent) {
		var info fs.FileInfo
		if info, err = os.Stat(parent); err != nil {
			break
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		mayEnter := info.Mode()&0o001 != 0 || ok && (int(st.Uid) == u.UID && info.Mode()&0o100 != 0 ||
			int(st.Gid) == u.GID && info.Mode()&0o010 != 0)
		if !mayEnter {
			return cli.Usagef("--data %s: slowpath gives root up, and the user %d may not enter %s; name another "+
				"directory, such as /var/lib/slowpath", dir, u.UID, parent)
		}
		if parent == filepath.Dir(parent) {
			return nil
		}
	}
	return cli.Usagef("--data %s: %w", dir, err)
}
