package clients

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"

	"slowpath/internal/lab/step"
	"slowpath/internal/lab/toolchain"
)

// Reasons outside of this program why a client is not available. They are the same as those of servers.
var (
	ErrTool     = toolchain.ErrTool
	ErrRegistry = toolchain.ErrRegistry
)

// Cache is a directory with one subdirectory for each name and source of a program. Several processes may share it.
type Cache struct{ built *toolchain.Cache }

// OpenCache makes the directory when it is missing. An empty dir means $XDG_CACHE_HOME/slowpath/clients, else
// ~/.cache/slowpath/clients.
func OpenCache(dir string) (*Cache, error) {
	built, err := toolchain.OpenCache(dir, "clients")
	return &Cache{built}, err
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
	dir, tools, err := c.built.Get(ctx, string(client.Name), s, client.recipe.Toolchain, func() {
		step.Say(ctx, "building the client %s", client.Name)
		fmt.Fprintf(progress, "%s: building the client, %s %s\n", client.Name, client.Library, client.Version)
	})
	if err != nil {
		return nil, err
	}
	return client.recipe.argv(tools, dir, client.Name), nil
}

// List is the catalogue with what this host has of it.
type List struct {
	Schema  string   `json:"schema"`
	Clients []Listed `json:"clients"`
}

// ListSchema names the JSON of a List (docs/json.md).
const ListSchema = "slowpath.clients/v1"

// Listed is a client, and whether it is ready to start.
type Listed struct {
	Client
	toolchain.State
}

// List looks for all programs and their tools.
func (c *Cache) List(ctx context.Context) (List, error) {
	list := List{Schema: ListSchema}
	for _, client := range catalogue {
		s, err := client.recipe.source(client.Name)
		if err != nil {
			return list, err
		}
		state := c.built.State(ctx, string(client.Name), s, client.recipe.Toolchain)
		state.Missing = strings.TrimPrefix(state.Missing, ErrTool.Error()+": ")
		list.Clients = append(list.Clients, Listed{client, state})
	}
	return list, nil
}

// Table is the list as text: its head and its rows.
func (l List) Table() (head []string, rows [][]string) {
	for _, c := range l.Clients {
		rows = append(rows, []string{
			string(c.Name), c.Library + " " + c.Version, c.Language, strings.Trim(fmt.Sprint(c.Modes), "[]"),
			c.State.String(),
		})
	}
	return []string{"NAME", "LIBRARY", "LANGUAGE", "MODES", "STATE"}, rows
}
