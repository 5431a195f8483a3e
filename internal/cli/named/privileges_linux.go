package named

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"slowpath/internal/source/privilege"
	"slowpath/internal/source/profile"
	"slowpath/internal/wire/target"
)

// needed are whose files and sockets a watch uses to its end.
type needed struct{ users []privilege.User }

// add takes the owner of a file, unless its mode says that no user is needed. It reports whether one was taken.
func (n *needed) add(path string, unless os.FileMode) bool {
	info, err := os.Stat(path)
	if err != nil || info.Mode()&unless != 0 {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if ok {
		n.users = append(n.users, privilege.User{UID: int(st.Uid), GID: int(st.Gid)})
	}
	return ok
}

// Dropper gives up what root may do beyond a watch, once it is called. Files that are written to the end of the watch
// have their directory changed: SQLite has files beside a recording.
func (c *CommandLine) Dropper(written []string, servers []target.Target, profiles []profile.Target) func() {
	return func() {
		const anybody = 0o002 // may make and remove files of its own there, or connect
		var n needed
		for _, path := range written {
			if path != "" && !n.add(filepath.Dir(path), anybody) {
				n.add(path, 0) // in /tmp its owner may make and remove files beside it
			}
		}
		own := c.Scratch.Path()
		if own != "" {
			n.add(filepath.Dir(own), anybody)
		}
		for _, t := range servers {
			if t.Network == "unix" {
				n.add(t.Path, anybody)
			}
		}
		for _, p := range profiles {
			if pid := p.PID(); pid != 0 { // a JVM answers its own user and root
				n.add(fmt.Sprintf("/proc/%d", pid), 0)
			}
		}
		c.drop(n, own)
	}
}

// DropBeside gives up what root may do beyond making files beside one that is there, which belong to the same user. A
// directory of another user takes the right to write there: that user is to read no such file.
func (c *CommandLine) DropBeside(path string) {
	const anybody = 0o002
	var n needed
	n.add(filepath.Dir(path), anybody)
	n.add(path, 0)
	c.drop(n, "")
}

func (c *CommandLine) drop(n needed, own string) {
	err := privilege.Drop(n.users, own)
	if err != nil && (!errors.Is(err, privilege.ErrBuild) || c.OnTerminal()) { // a build for tests has cgo
		c.Say("slowpath keeps more privileges than it needs: " + err.Error())
	}
}
