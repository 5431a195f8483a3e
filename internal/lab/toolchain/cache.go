package toolchain

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Cache is a directory with one subdirectory for each name and source of a program. Several processes may share it.
type Cache struct{ dir string }

// OpenCache makes the directory when it is missing. An empty dir means $XDG_CACHE_HOME/slowpath/KIND, else
// ~/.cache/slowpath/KIND.
func OpenCache(dir, kind string) (*Cache, error) {
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("finding the cache directory: %w; set XDG_CACHE_HOME", err)
		}
		dir = filepath.Join(base, "slowpath", kind)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the cache of %s: %w", kind, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("opening the cache of %s: %w", kind, err)
	}
	return &Cache{dir}, nil
}

// State says whether a program is ready to start.
type State struct {
	Built   bool   `json:"built"`             // the cache has it
	Missing string `json:"missing,omitempty"` // the tool, and how it is installed
}

// String is the state as a cell of a table.
func (s State) String() string {
	switch {
	case s.Missing != "":
		return s.Missing
	case s.Built:
		return "built"
	}
	return "built on first use"
}

// State looks for the program and for its tools.
func (c *Cache) State(ctx context.Context, name string, s Source, t Toolchain) (st State) {
	_, err := os.Stat(c.place(name, s))
	st.Built = err == nil
	if _, err := t.Find(ctx); err != nil {
		st.Missing = err.Error()
	}
	return st
}

// Get returns the directory of a program and the tools that run it. It builds the program first if the cache does not
// have it, and calls building before that. Errors match ErrTool or ErrRegistry.
func (c *Cache) Get(ctx context.Context, name string, s Source, t Toolchain, building func()) (string, Tools, error) {
	found, err := t.Find(ctx)
	if err != nil {
		return "", nil, err
	}
	dir, err := c.install(name, s, func(dir string) error {
		building()
		return t.build(ctx, found, dir, name)
	})
	return dir, found, err
}

// place is the directory of the program of a source.
func (c *Cache) place(name string, s Source) string { return filepath.Join(c.dir, name+"-"+s.hash()) }

// install returns the directory of a source in the cache. It builds in a temporary directory and renames that, so that
// a build that was killed is never used as a program. Of two processes that build at once the first one wins.
func (c *Cache) install(name string, s Source, build func(dir string) error) (string, error) {
	final := c.place(name, s)
	if _, err := os.Stat(final); err == nil {
		return final, nil
	}
	tmp, err := os.MkdirTemp(c.dir, ".tmp-"+name+"-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp) // does nothing after the rename
	if err := os.Chmod(tmp, 0o755); err != nil {
		return "", err
	}
	if err := s.write(tmp); err != nil {
		return "", err
	}
	if err := build(tmp); err != nil {
		return "", err
	}
	if err := os.Rename(tmp, final); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return final, nil
}
