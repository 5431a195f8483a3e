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

// App is one entry of the catalogue, and of the list of slowpath.apps/v1.
type App struct {
	Name     Name   `json:"name"`
	Title    string `json:"title"` // what it does
	Language string `json:"language"`
	// Libraries are what it is made of, with the versions that are built; "Debian": that of its package.
	Libraries string `json:"libraries"`
	Commands  string `json:"commands"` // that it sends most of
	// Rate is operations per second, which several callers start at random times.
	Rate float64 `json:"operations_per_second"`
	// Web applications are HTTP services; the lab views their pages. Others do their operations by themselves.
	Web bool `json:"-"`
	// Twemproxy says that it works through twemproxy, which has no transactions, no Pub/Sub, no blocking commands and
	// no scripts without keys. Applications of which that is true get their client's handshake switched off.
	Twemproxy bool `json:"twemproxy"`
	// TLS says that its libraries trust the CA that the environment names.
	TLS bool `json:"tls"`
	// Pool says that it can have another number of callers, and of connections that they share.
	Pool bool `json:"-"`

	recipe recipe
}

// Reasons outside of this program why an application is not available.
var (
	ErrTool     = toolchain.ErrTool
	ErrRegistry = toolchain.ErrRegistry
)

// Catalogue lists the applications.
func Catalogue() []App { return slices.Clone(catalogue) }

// Known lists the names of the applications.
func Known() []Name {
	names := make([]Name, len(catalogue))
	for i, a := range catalogue {
		names[i] = a.Name
	}
	return names
}

// Lookup returns the application with a name. The error lists the known names.
func Lookup(name Name) (App, error) {
	for _, a := range catalogue {
		if a.Name == name {
			return a, nil
		}
	}
	return App{}, fmt.Errorf("unknown application %q; known: %s", name, strings.Trim(fmt.Sprint(Known()), "[]"))
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

// List is the catalogue with what this host has of it.
type List struct {
	Schema string   `json:"schema"`
	Apps   []Listed `json:"apps"`
}

// Schema names the JSON of a List.
const Schema = "slowpath.apps/v1"

// Listed is an application, and whether it is ready to start.
type Listed struct {
	App
	toolchain.State
}

// List looks for all applications and their tools.
func (c *Cache) List(ctx context.Context) (List, error) {
	list := List{Schema: Schema}
	for _, a := range catalogue {
		s, err := a.source()
		if err != nil {
			return list, err
		}
		list.Apps = append(list.Apps, Listed{a, c.built.State(ctx, string(a.Name), s, a.recipe.chain)})
	}
	return list, nil
}

// Table is the list as text: its head and its rows.
func (l List) Table() (head []string, rows [][]string) {
	for _, a := range l.Apps {
		rows = append(rows, []string{string(a.Name), a.Language, a.Libraries, a.State.String()})
	}
	return []string{"NAME", "LANGUAGE", "LIBRARIES", "STATE"}, rows
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
