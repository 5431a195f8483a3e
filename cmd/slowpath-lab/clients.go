//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/lab/clients"
	"slowpath/internal/report/layout"
)

func (a *app) clients() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "clients",
		Short: "List, build and run real client libraries",
		Long: "clients are small programs on public client libraries, each in the version that it names. They are " +
			"built into a cache on first use. docs/clients.md has the protocol for a program of your own.",
		Example: `  slowpath lab clients
  slowpath lab clients build go-redis-v6 jedis
  slowpath lab clients run go-redis-v9 127.0.0.1:6379 --workers 50 --for 5s`,
		Args: cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cache, err := clients.OpenCache("")
			if err != nil {
				return err
			}
			return a.listClients(clientRows(cmd.Context(), cache), asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print slowpath.clients/v1")
	c.AddCommand(a.clientsBuild(), a.clientsRun())
	return c
}

// clientRow is a client as slowpath.clients/v1 has it.
type clientRow struct {
	Name     clients.Name `json:"name"`
	Library  string       `json:"library"`
	Version  string       `json:"version"`
	Language string       `json:"language"`
	Modes    []string     `json:"modes"`
	HTTP     bool         `json:"http"`
	Built    bool         `json:"built"`
	Missing  string       `json:"missing,omitempty"` // the tool, and how it is installed
}

func (r clientRow) state() string {
	switch {
	case r.Missing != "":
		return r.Missing
	case r.Built:
		return "built"
	}
	return "built on first use"
}

func clientRows(ctx context.Context, cache *clients.Cache) []clientRow {
	var rows []clientRow
	for _, c := range clients.Catalogue() {
		r := clientRow{
			Name: c.Name, Library: c.Library, Version: c.Version, Language: c.Language, HTTP: c.HTTP,
			Built: cache.Built(c),
		}
		for _, m := range c.Modes {
			r.Modes = append(r.Modes, string(m))
		}
		if err := c.Tool(ctx); err != nil {
			r.Missing = strings.TrimPrefix(err.Error(), clients.ErrTool.Error()+": ")
		}
		rows = append(rows, r)
	}
	return rows
}

func (a *app) listClients(rows []clientRow, asJSON bool) error {
	if asJSON {
		return layout.JSON(a.Stdout, "the result", struct {
			Schema  string      `json:"schema"`
			Clients []clientRow `json:"clients"`
		}{"slowpath.clients/v1", rows})
	}
	var cells [][]string
	for _, r := range rows {
		cells = append(cells, []string{
			string(r.Name), r.Library + " " + r.Version, r.Language, strings.Join(r.Modes, " "), r.state(),
		})
	}
	p := layout.New(a.listStyle())
	p.Table([]string{"NAME", "LIBRARY", "LANGUAGE", "MODES", "STATE"}, cells)
	return p.To(a.Stdout, "the list")
}

func (a *app) clientsBuild() *cobra.Command {
	return &cobra.Command{
		Use:     "build [NAME...]",
		Short:   "Build client programs into the cache",
		Example: "  slowpath lab clients build go-redis-v6 redis-py",
		RunE: func(cmd *cobra.Command, args []string) error {
			cache, err := clients.OpenCache("")
			if err != nil {
				return err
			}
			names, err := clientNames(args)
			if err != nil {
				return err
			}
			ctx := a.steps(cmd.Context(), "what is ready stays in the cache")
			return build(a.Stdout, names, func(name clients.Name) error {
				defer a.ProgressDone()
				_, err := cache.Get(ctx, name, a.Stderr)
				return err
			})
		},
	}
}

// build gets programs into a cache, and says how long each took. What cannot be built does not hold up the others.
func build[Name ~string](w io.Writer, names []Name, get func(Name) error) error {
	var errs []error
	for _, name := range names {
		start := time.Now()
		if err := get(name); err != nil {
			errs = append(errs, missingTool(err))
			continue
		}
		fmt.Fprintf(w, "%-16s ready in %.1f s\n", name, time.Since(start).Seconds())
	}
	return errors.Join(errs...)
}

// clientNames are those of the arguments, or all.
func clientNames(args []string) ([]clients.Name, error) {
	if len(args) == 0 {
		return clients.Known(), nil
	}
	var names []clients.Name
	for _, arg := range args {
		if _, err := clients.Lookup(clients.Name(arg)); err != nil {
			return nil, cli.Usage(err)
		}
		names = append(names, clients.Name(arg))
	}
	return names, nil
}

// missingTool marks what this host lacks, for the exit code.
func missingTool(err error) error {
	if errors.Is(err, clients.ErrTool) || errors.Is(err, clients.ErrRegistry) || errors.Is(err,
		clients.ErrUnsupported) {
		return fmt.Errorf("%w: %w", cli.ErrMissing, err)
	}
	return err
}
