// Package clients are the lab's client programs: real client libraries, each in a process of its own, for the incidents whose fault lies
// in the client. A load in the lab's own process (package traffic) has no pool, no garbage collector and no CPU of its own to look at.
//
// The programs are kept here as source. Those in Go are modules of their own with pinned versions, built on first use; their
// directories begin with "_", so that the go command passes over them. Python's library is the Debian package.
package clients

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"slowpath/internal/lab/servers"
)

// Name is the name of a client program.
type Name string

// The client programs.
const (
	GoRedis9 Name = "goredis9" // go-redis v9.23.0
	Redigo   Name = "redigo"   // redigo v1.9.3
	PyAsync  Name = "pyasync"  // redis.asyncio of Debian's python3-redis: 4.3.4 in bookworm
)

// Known lists the programs.
func Known() []Name { return []Name{GoRedis9, Redigo, PyAsync} }

// Reasons outside of this program for which a client cannot be had are those of servers.
var (
	ErrTool     = servers.ErrTool
	ErrRegistry = servers.ErrRegistry
)

// Cache is a directory of programs: one subdirectory per name and source. Several processes may share it.
type Cache struct{ dir string }

// OpenCache makes the directory when it is missing. An empty dir means $XDG_CACHE_HOME/slowpath/clients, else ~/.cache/slowpath/clients.
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

// Get returns a program, building it first when the cache does not have it. Progress may be nil. Errors match ErrTool, with the package
// to install, or ErrRegistry where the cause lies outside.
func (c *Cache) Get(ctx context.Context, name Name, progress io.Writer) (Program, error) {
	if progress == nil {
		progress = io.Discard
	}
	p := Program{Name: name}
	var err error
	switch name {
	case GoRedis9, Redigo:
		p.Argv, err = c.goProgram(ctx, name, progress)
	case PyAsync:
		p.Argv, err = c.pythonProgram(ctx, name)
	default:
		return p, fmt.Errorf("unknown client program %q; known: %v", name, Known())
	}
	if err != nil {
		return p, fmt.Errorf("obtaining the client %s: %w", name, err)
	}
	return p, nil
}
