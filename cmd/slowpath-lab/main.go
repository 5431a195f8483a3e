//go:build linux

// Command slowpath-lab makes real faults on real servers, and grades the verdicts of slowpath, which is beside it. As
// "slowpath lab" it is the same.
package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/clients/programs/protocol"
)

// version is set by the linker (make build).
var version = "dev"

func main() {
	os.Exit(Main())
}

// Main is the program as a function, so that scripts in tests run it in a process of their own.
func Main() int {
	a := &app{cli.NewProgram(version)}
	return a.Main(a.root(), told)
}

// app is one command line of the lab.
type app struct{ *cli.Program }

// told gives errors of client programs their exit codes.
func told(_ *cobra.Command, err error) error {
	switch {
	case errors.Is(err, protocol.ErrSummary): // of a program that the user named
		return cli.Usage(err)
	case errors.Is(err, clients.ErrConnect):
		return cli.WithCode(cli.ExitConnect, err)
	}
	return err
}

// slowpath is the program that the lab grades: the one beside it.
func slowpath() (path string, err error) { return cli.Beside("slowpath") }
