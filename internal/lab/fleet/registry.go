package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Registry is a directory with one JSON file for each thing that labs made and have not removed. Several labs may share
// it.
type Registry struct {
	dir  string
	host Host
	me   Process
}

// OpenRegistry opens the registry of this user and makes its directory if there is none. An empty dir means
// $XDG_STATE_HOME/slowpath/lab, else /tmp/slowpath-lab-UID. Only the user may write to the directory, because its files
// decide what Sweep removes.
func OpenRegistry(dir string) (*Registry, error) {
	return openRegistry(dir, RealHost())
}

func openRegistry(dir string, host Host) (*Registry, error) {
	if dir == "" {
		dir = filepath.Join("/tmp", fmt.Sprintf("slowpath-lab-%d", os.Geteuid()))
		if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
			dir = filepath.Join(state, "slowpath", "lab")
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("opening the lab's registry: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the lab's registry: %w", err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("opening the lab's registry: %s must be a directory that belongs to you and that "+
			"nobody else can write; remove it or set XDG_STATE_HOME", dir)
	}
	me, err := host.process(os.Getpid())
	if err != nil {
		return nil, fmt.Errorf("opening the lab's registry: %w", err)
	}
	return &Registry{dir: dir, host: host, me: me}, nil
}

// Add records e, owned by this process, and returns it with its id. Call it before the thing is made.
func (r *Registry) Add(e Entry) (Entry, error) {
	e.ID, e.Owner, e.BootID, e.Created, e.User = newID(), r.me, r.host.bootID(), time.Now().UTC(), caller()
	if err := e.check(r.host.Cgroup); err != nil {
		return e, fmt.Errorf("registering: %w", err)
	}
	return e, r.Update(e)
}

// Update replaces an entry atomically, for instance when the pid of its process is known.
func (r *Registry) Update(e Entry) error {
	body, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return fmt.Errorf("registering %s: %w", e.Kind, err)
	}
	tmp := filepath.Join(r.dir, ".new-"+e.ID)
	if err := os.WriteFile(tmp, append(body, '\n'), 0o600); err != nil {
		return fmt.Errorf("registering %s: %w", e.Kind, err)
	}
	if err := os.Rename(tmp, r.path(e.ID)); err != nil {
		return fmt.Errorf("registering %s: %w", e.Kind, err)
	}
	return nil
}

// Forget removes the entry, not the thing. An entry that does not exist is no error.
func (r *Registry) Forget(id string) error {
	if err := os.Remove(r.path(id)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("forgetting %s: %w", id, err)
	}
	return nil
}

func (r *Registry) path(id string) string { return filepath.Join(r.dir, id+".json") }

// Entries reads all entries, oldest first. The error reports files that are not entries.
func (r *Registry) Entries() ([]Entry, error) {
	files, err := os.ReadDir(r.dir)
	if err != nil {
		return nil, fmt.Errorf("reading the lab's registry: %w", err)
	}
	var out []Entry
	var errs []error
	for _, f := range files {
		id, ok := strings.CutSuffix(f.Name(), ".json")
		if !ok {
			continue
		}
		e, err := r.read(id)
		if errors.Is(err, os.ErrNotExist) { // another lab has removed it
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("reading %s of the lab's registry: %w; inspect it and remove it", f.Name(),
				err))
			continue
		}
		out = append(out, e)
	}
	sortByTime(out)
	return out, errors.Join(errs...)
}

func (r *Registry) read(id string) (Entry, error) {
	var e Entry
	body, err := os.ReadFile(r.path(id))
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(body, &e); err != nil {
		return e, err
	}
	if e.ID != id {
		return e, fmt.Errorf("its id is %q", e.ID)
	}
	return e, e.check(r.host.Cgroup)
}

// caller is the number of the user who runs the lab: of root the one who called sudo, since users of sudo share root's
// registry.
func caller() string {
	uid := os.Geteuid()
	if n, err := strconv.Atoi(os.Getenv("SUDO_UID")); err == nil && uid == 0 && n > 0 {
		uid = n
	}
	return strconv.Itoa(uid)
}

// own reports whether this user made the entry, or an older version of the lab, which did not note who.
func (e Entry) own() bool { return e.User == "" || e.User == caller() }

// current reports whether the entry was made since the last boot.
func (r *Registry) current(e Entry) bool { return e.BootID == r.host.bootID() }

// orphaned reports whether the lab that made the entry has ended.
func (r *Registry) orphaned(e Entry) bool { return !r.current(e) || !r.host.alive(e.Owner) }
