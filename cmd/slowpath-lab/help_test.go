//go:build linux

package main

import (
	"testing"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/cli/clitest"
)

func TestHelps(t *testing.T) {
	clitest.Helps(t, clitest.Program{
		Root: func() *cobra.Command { return (&app{cli.NewProgram(version)}).root() },
		Own: func(args []string) []string {
			switch args[0] {
			case "lab":
				return args[1:]
			case "matrix":
				return args
			}
			return nil
		},
	})
}
