package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"slowpath/internal/lab/step"
)

// Cache is a directory with one subdirectory for each server. Several processes may share it.
type Cache struct {
	dir string
}

// OpenCache makes the directory when it is missing. An empty dir means $XDG_CACHE_HOME/slowpath/servers, else
// ~/.cache/slowpath/servers.
func OpenCache(dir string) (*Cache, error) {
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("finding the cache directory: %w; set XDG_CACHE_HOME", err)
		}
		dir = filepath.Join(base, "slowpath", "servers")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the server cache: %w", err)
	}
	// Old versions of Redis check the whole path in argv[0], and a colon would split LD_LIBRARY_PATH.
	for _, bad := range []string{":", "redis-check-", "valkey-check-", "--sentinel", "redis-sentinel"} {
		if strings.Contains(dir, bad) {
			return nil, fmt.Errorf("opening the server cache: the path %s must not contain %q", dir, bad)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("opening the server cache: %w", err)
	}
	return &Cache{dir: dir}, nil
}

// Installed lists the servers that are in the cache and answer --version rightly, in the order of the catalogue.
func (c *Cache) Installed(ctx context.Context) []Binary {
	var out []Binary
	for _, s := range catalogue {
		if b, err := c.open(ctx, s); err == nil {
			out = append(out, b)
		}
	}
	return out
}

func (c *Cache) open(ctx context.Context, s Server) (Binary, error) {
	dir := filepath.Join(c.dir, string(s.Name))
	m, err := readManifest(dir)
	if err != nil {
		return Binary{}, err
	}
	s.Origin = m.Origin
	b := m.binary(s, dir)
	return b, b.verify(ctx)
}

// job is where and how a recipe works.
type job struct {
	cache    string    // the cache's directory, for what recipes share
	dir      string    // an empty directory, renamed to its place on success
	progress io.Writer // one line per step
	server   Name
}

func (j job) say(format string, args ...any) {
	fmt.Fprintf(j.progress, "%s: %s\n", j.server, fmt.Sprintf(format, args...))
}

// Get returns the server, and downloads or builds it first if the cache has none that works. Several processes may call
// it; an attempt that fails or is killed leaves the cache as it was. Progress may be nil. Errors are one line and match
// ErrRegistry or ErrTool if the reason is outside of this program.
func (c *Cache) Get(ctx context.Context, name Name, progress io.Writer) (Binary, error) {
	s, err := Lookup(name)
	if err != nil {
		return Binary{}, err
	}
	return c.get(ctx, s, progress)
}

func (c *Cache) get(ctx context.Context, s Server, progress io.Writer) (Binary, error) {
	name := s.Name
	if b, err := c.open(ctx, s); err == nil {
		return b, nil
	}
	if progress == nil {
		progress = io.Discard
	}
	step.Say(ctx, "getting %s", name)
	unlock, err := lock(ctx, filepath.Join(c.dir, ".lock-"+string(name)))
	if err != nil {
		return Binary{}, fmt.Errorf("getting %s: %w", name, err)
	}
	defer unlock()
	if b, err := c.open(ctx, s); err == nil { // another process has made it
		return b, nil
	}
	var failures []error
	for _, r := range s.recipes {
		if err := c.build(ctx, s, r, progress); err != nil {
			failures = append(failures, err)
			continue
		}
		b, err := c.open(ctx, s)
		if err != nil {
			return b, fmt.Errorf("getting %s: %w", name, err)
		}
		return b, nil
	}
	return Binary{}, fmt.Errorf("getting %s: %w", name, oneLine(failures))
}

// build runs a recipe in a temporary directory, which it renames when the server prints the right --version.
func (c *Cache) build(ctx context.Context, s Server, r recipe, progress io.Writer) error {
	prefix := ".tmp-" + string(s.Name) + "-"
	leftovers, _ := filepath.Glob(filepath.Join(c.dir, prefix+"*")) // of killed attempts: this process has the lock
	for _, old := range leftovers {
		if err := os.RemoveAll(old); err != nil {
			return err
		}
	}
	tmp, err := os.MkdirTemp(c.dir, prefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	dir := filepath.Join(tmp, "new")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	m, err := r(ctx, s, job{cache: c.dir, dir: dir, progress: progress, server: s.Name})
	if err != nil {
		return err
	}
	if err := m.binary(s, dir).verify(ctx); err != nil {
		return err
	}
	if err := m.write(dir); err != nil {
		return err
	}
	if err := openToAll(dir); err != nil {
		return err
	}
	final := filepath.Join(c.dir, string(s.Name))
	if err := os.Rename(final, filepath.Join(tmp, "old")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Rename(dir, final)
}

// openToAll lets every user read a directory and execute its programs, whatever the umask: servers of root run as
// another user.
func openToAll(dir string) error {
	return filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Type()&os.ModeSymlink != 0 {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		mode := info.Mode().Perm()
		return os.Chmod(path, mode|mode>>3&0o050|mode>>6&0o005)
	})
}
