package fleet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"slowpath/internal/lab/servers"
)

// ServerUser is the user and the group of the servers and proxies that a lab of root starts: they need none of root's
// rights, and every user of the host can reach them. No account has this number: it is above systemd's dynamic users
// (61184 to 65519) and below nobody (65534), whose processes and files are also those of other daemons.
const ServerUser = 65530

// asServerUser is the command that executes the next one as ServerUser, without any capability. An ordinary user's
// servers are that user's.
func asServerUser() []string {
	if os.Geteuid() != 0 {
		return nil
	}
	user := strconv.Itoa(ServerUser)
	return []string{
		"setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--inh-caps=-all", "--bounding-set=-all",
		"--no-new-privs", "--",
	}
}

// programs is the directory of a server's program and libraries, or the one program that is needed, for a process that
// has it open as its first descriptor after stderr. By this path ServerUser reaches it in a directory of root's.
const programs = "/proc/self/fd/3"

// ServerAt is a server of any version at a path. It is asked for its version as it will run: of root's lab as
// ServerUser, through a descriptor of its directory.
func ServerAt(ctx context.Context, path string) (servers.Binary, error) {
	as := servers.As{Prefix: asServerUser()}
	if len(as.Prefix) > 0 {
		as.Dir = programs
	}
	return servers.AtPath(ctx, path, as)
}

// HandOver gives a directory and the files in it to the user that servers run as. The directory comes last: until then
// nobody else can change what is in it.
func HandOver(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err = os.Lchown(filepath.Join(dir, f.Name()), ServerUser, ServerUser); err != nil {
			break
		}
	}
	if err == nil {
		err = os.Lchown(dir, ServerUser, ServerUser)
	}
	if err != nil {
		return fmt.Errorf("giving a directory to the user %d of the lab's servers: %w; run the lab as an ordinary user",
			ServerUser, err)
	}
	return nil
}

// TempDir is where the directories of servers are made, without symlinks, as in /proc/PID/cwd: os.TempDir, or /tmp
// where ServerUser may not enter that.
func TempDir() (string, error) {
	dir, err := filepath.EvalSymlinks(os.TempDir())
	if err != nil || os.Geteuid() != 0 || openToAll(dir) {
		return dir, err
	}
	return filepath.EvalSymlinks("/tmp")
}

// openToAll reports whether every user may enter a directory and those above it.
func openToAll(dir string) bool {
	const enter = 0o001
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&enter == 0 {
			return false
		}
		above := filepath.Dir(dir)
		if above == dir {
			return true
		}
		dir = above
	}
}
