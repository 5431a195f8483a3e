package clients

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"slowpath/internal/lab/servers"
)

// Reasons outside of this program why a client is not available. They are the same as those of servers.
var (
	ErrTool     = servers.ErrTool
	ErrRegistry = servers.ErrRegistry
)

// Cache is a directory with one subdirectory for each name and source of a program. Several processes may share it.
type Cache struct{ dir string }

// OpenCache makes the directory when it is missing. An empty dir means $XDG_CACHE_HOME/slowpath/clients, else
// ~/.cache/slowpath/clients.
func OpenCache(dir string) (*Cache, error) {
	if dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("finding the cache directory: %w; set XDG_CACHE_HOME", err)
		}
		dir = filepath.Join(base, "slowpath", "clients")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the cache of clients: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("opening the cache of clients: %w", err)
	}
	return &Cache{dir}, nil
}

// Program is a client program that is ready to start.
type Program struct {
	Name Name
	Argv []string
}

// Get returns a program, and builds it first if the cache does not have it. Progress may be nil. Errors match ErrTool
// if a package is missing, which they name, or ErrRegistry if a download failed.
func (c *Cache) Get(ctx context.Context, name Name, progress io.Writer) (Program, error) {
	if strings.Contains(string(name), "/") {
		return userProgram(name)
	}
	client, err := Lookup(name)
	if err != nil {
		return Program{}, err
	}
	if progress == nil {
		progress = io.Discard
	}
	p := Program{Name: name}
	if p.Argv, err = c.get(ctx, client, progress); err != nil {
		return p, fmt.Errorf("getting the client %s: %w", name, err)
	}
	return p, nil
}

// userProgram finds the program of a user by its path.
func userProgram(name Name) (Program, error) {
	path, err := exec.LookPath(string(name))
	if err == nil {
		path, err = filepath.Abs(path) // it runs in another directory
	}
	if err != nil {
		return Program{}, fmt.Errorf("finding the client %s: %w", name, err)
	}
	return Program{Name: name, Argv: []string{path}}, nil
}

func (c *Cache) get(ctx context.Context, client Client, progress io.Writer) ([]string, error) {
	s, err := client.recipe.source(client.Name)
	if err != nil {
		return nil, err
	}
	found, err := client.recipe.find(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := c.install(client.Name, s, func(dir string) error {
		fmt.Fprintf(progress, "%s: building the client, %s %s\n", client.Name, client.Library, client.Version)
		return client.recipe.build(ctx, found, dir, client.Name)
	})
	if err != nil {
		return nil, err
	}
	return client.recipe.argv(found, dir, client.Name), nil
}

// Built reports whether the cache has the program.
func (c *Cache) Built(client Client) bool {
	s, err := client.recipe.source(client.Name)
	if err != nil {
		return false
	}
	_, err = os.Stat(c.place(client.Name, s))
	return err == nil
}

// Tool returns nil if this host has the client's toolchain, and otherwise an error that matches ErrTool and says what
// to install.
func (c Client) Tool(ctx context.Context) error {
	_, err := c.recipe.find(ctx)
	return err
}

// place is the directory of the program of a source.
func (c *Cache) place(name Name, s source) string {
	return filepath.Join(c.dir, string(name)+"-"+s.hash())
}

// install returns the directory of a source in the cache. It builds in a temporary directory and renames that, so that
// a build that was killed is never used as a program. Of two processes that build at once the first one wins.
func (c *Cache) install(name Name, s source, build func(dir string) error) (string, error) {
	final := c.place(name, s)
	if _, err := os.Stat(final); err == nil {
		return final, nil
	}
	tmp, err := os.MkdirTemp(c.dir, ".tmp-"+string(name)+"-")
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
