//go:build !linux

package named

import (
	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/source/tap"
)

// Servers: the files of other processes are those of Linux.
func Servers() []Server { return nil }

// ServerOf: a pid was refused.
func (*CommandLine) ServerOf(_ *cobra.Command, _ int, args []string) ([]string, error) {
	return args, nil
}

// Traced: a recording can be traced, a live server cannot.
func (*CommandLine) Traced(*cobra.Command, int, []string) ([]tap.Node, []string, error) {
	return nil, nil, cli.MissingTap("trace of a live server")
}
