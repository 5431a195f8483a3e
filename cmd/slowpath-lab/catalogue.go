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
	"slowpath/internal/lab/servers"
	"slowpath/internal/report/layout"
)

// listing makes a command list the programs of a cache.
func listing[L interface{ Table() ([]string, [][]string) }, C interface {
	List(context.Context) (L, error)
}](a *app, c *cobra.Command, schema string, open func(dir string) (C, error)) *cobra.Command {
	asJSON := c.Flags().Bool("json", false, "print "+schema)
	c.Args = cli.Subcommand
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		cache, err := open("")
		if err != nil {
			return err
		}
		list, err := cache.List(cmd.Context())
		if err != nil {
			return err
		}
		if *asJSON {
			return layout.JSON(a.Stdout, "the result", list)
		}
		p := layout.New(a.listStyle())
		p.Table(list.Table())
		return p.To(a.Stdout, "the list")
	}
	return c
}

// building makes a command get the programs that its arguments name, or all, into a cache, and say how long each took.
// What cannot be had does not hold up the others. told is what else is said of a program, or its error.
func building[Name ~string, Entry, Program any, C interface {
	Get(context.Context, Name, io.Writer) (Program, error)
}](a *app, c *cobra.Command, width int, known func() []Name, lookup func(Name) (Entry, error),
	open func(dir string) (C, error), told func(Program, error) (string, error),
) *cobra.Command {
	c.RunE = func(cmd *cobra.Command, args []string) error {
		cache, err := open("")
		if err != nil {
			return err
		}
		var names []Name
		for _, arg := range args {
			if _, err := lookup(Name(arg)); err != nil {
				return cli.Usage(err)
			}
			names = append(names, Name(arg))
		}
		if len(args) == 0 {
			names = known()
		}
		var errs []error
		ctx := a.steps(cmd.Context(), "what is ready stays in the cache")
		for _, name := range names {
			start := time.Now()
			more, err := told(cache.Get(ctx, name, a.Stderr))
			a.ProgressDone()
			if err != nil {
				errs = append(errs, err)
				continue
			}
			fmt.Fprintf(a.Stdout, "%-*s ready in %.1f s%s\n", width, name, time.Since(start).Seconds(), more)
		}
		return errors.Join(errs...)
	}
	return c
}

// Columns of names.
const (
	serverWidth  = 14
	programWidth = 16
)

func (a *app) servers() *cobra.Command {
	return building(a, &cobra.Command{
		Use:     "servers [NAME...]",
		Short:   "Get server versions into the cache",
		Example: "  slowpath lab servers redis-6.0.16 valkey-8.1.1",
	}, serverWidth, servers.Known, servers.Lookup, servers.OpenCache, toldArgv)
}

func toldArgv(b servers.Binary, err error) (string, error) {
	return ": " + strings.Join(b.Argv(), " "), err
}

func toldMissing[Program any](_ Program, err error) (string, error) { return "", missingTool(err) }

// missingTool marks what this host lacks, for the exit code.
func missingTool(err error) error {
	if errors.Is(err, clients.ErrTool) || errors.Is(err, clients.ErrRegistry) || errors.Is(err,
		clients.ErrUnsupported) {
		return fmt.Errorf("%w: %w", cli.ErrMissing, err)
	}
	return err
}
