// Package apps builds and runs the lab's applications: task queues, sites with sessions and caches, locks, streams, as
// people run them, on public frameworks and with their usual configuration. What a fault costs the users of an
// application is measured by the application itself.
//
// The applications are sources (slowpath/internal/lab/apps/appsources) that are built on first use, with pinned
// versions. docs/apps.md lists them, and has their protocol.
package apps

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"slowpath/internal/lab/step"
	"slowpath/internal/lab/toolchain"
)

// Name is the name of an application.
type Name string

// App is one entry of the catalogue.
type App struct {
	Name      Name
	Title     string // what it does
	Language  string
	Libraries string // that it is made of, with the versions that are built; "Debian": that of its package
	Commands  string // that it sends most of
	// Rate is operations per second, which several callers start at random times.
	Rate float64
	// Web applications are HTTP services; the lab views their pages. Others do their operations by themselves.
	Web bool
	// Twemproxy says that it works through twemproxy, which has no transactions, no Pub/Sub, no blocking commands and
	// no scripts without keys. Applications of which that is true get their client's handshake switched off.
	Twemproxy bool
	// TLS says that its libraries trust the CA that the environment names.
	TLS bool
	// Pool says that it can have another number of callers, and of connections that they share.
	Pool bool

	recipe recipe
}

// Reasons outside of this program why an application is not available.
var (
	ErrTool     = toolchain.ErrTool
	ErrRegistry = toolchain.ErrRegistry
)

// Catalogue lists the applications.
func Catalogue() []App { return slices.Clone(catalogue) }

// Lookup returns the application with a name. The error lists the known names.
func Lookup(name Name) (App, error) {
	known := make([]string, len(catalogue))
	for i, a := range catalogue {
		if a.Name == name {
			return a, nil
		}
		known[i] = string(a.Name)
	}
	return App{}, fmt.Errorf("unknown application %q; known: %s", name, strings.Join(known, " "))
}

// Tool returns nil if this host has the application's toolchain, and otherwise an error that matches ErrTool and says
// what to install.
func (a App) Tool(ctx context.Context) error {
	_, err := a.recipe.chain.Find(ctx)
	return err
}

// Cache is a directory with one subdirectory for each name and source of an application. Several processes may share
// it.
type Cache struct{ built *toolchain.Cache }

// OpenCache makes the directory when it is missing. An empty dir means $XDG_CACHE_HOME/slowpath/apps, else
// ~/.cache/slowpath/apps.
func OpenCache(dir string) (*Cache, error) {
	built, err := toolchain.OpenCache(dir, "apps")
	return &Cache{built}, err
}

// Built reports whether the cache has the application.
func (c *Cache) Built(a App) bool {
	s, err := a.source()
	return err == nil && c.built.Built(string(a.Name), s)
}

// Program is an application that is ready to start.
type Program struct {
	App
	place place
}

// Get returns an application, and builds it first if the cache does not have it. Progress may be nil. Errors match
// ErrTool if a package is missing, which they name, or ErrRegistry if a download failed.
func (c *Cache) Get(ctx context.Context, name Name, progress io.Writer) (Program, error) {
	a, err := Lookup(name)
	if err != nil {
		return Program{}, err
	}
	failed := func(err error) (Program, error) {
		return Program{}, fmt.Errorf("getting the application %s: %w", name, err)
	}
	s, err := a.source()
	if err != nil {
		return failed(err)
	}
	dir, tools, err := c.built.Get(ctx, string(name), s, a.recipe.chain, func() {
		step.Say(ctx, "building the application %s", name)
		if progress != nil {
			fmt.Fprintf(progress, "%s: building the application, %s\n", name, a.Libraries)
		}
	})
	if err != nil {
		return failed(err)
	}
	return Program{App: a, place: place{dir: dir, tools: tools}}, nil
}
