// Command slowpath tells why a Redis or Valkey call was slow.
package main

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/cli/named"
	"slowpath/internal/source"
	"slowpath/internal/source/profile"
	"slowpath/internal/topology/survey"
	"slowpath/internal/topology/watch"
)

func main() {
	os.Exit(Main())
}

// Main is the program as a function, so that scripts in tests run it in a process of their own.
func Main() int {
	a := newApp(cli.NewProgram(version))
	return a.Main(a.root(), a.told)
}

// app is one command line of slowpath.
type app struct {
	*named.CommandLine
}

func newApp(p *cli.Program) *app {
	return &app{CommandLine: &named.CommandLine{Program: p}}
}

// execute executes a command line and returns the exit code.
func (a *app) execute(ctx context.Context, args []string) int {
	return a.Run(ctx, a.root(), args, a.told)
}

// told is an error as it is told: where no server was named it names those of this host, and it has its exit code.
func (a *app) told(cmd *cobra.Command, err error) error {
	err = a.Elsewhere(cmd, err)
	switch {
	case errors.Is(err, profile.ErrTarget) && errors.Is(err, fs.ErrPermission):
		return cli.WithCode(cli.ExitMissing, err)
	case errors.Is(err, profile.ErrNotPprof), errors.Is(err, profile.ErrTarget):
		return cli.Usage(err)
	case errors.Is(err, survey.ErrNoMap), errors.Is(err, watch.ErrUnreachable), errors.Is(err, profile.ErrUnreachable):
		return cli.WithCode(cli.ExitConnect, err)
	case errors.Is(err, source.ErrMaySample):
		return cli.WithCode(cli.ExitMissing, err)
	}
	return err
}
