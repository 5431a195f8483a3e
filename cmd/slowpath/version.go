package main

import (
	"cmp"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"slowpath/internal/cli"
	"slowpath/internal/recording"
	"slowpath/internal/report/layout"
)

// version and commit are set by the linker (make build).
var version, commit = "dev", ""

const versionSchema = "slowpath.version/v1"

// versionInfo is what a report of a fault needs of the program and the system.
type versionInfo struct {
	Schema    string `json:"schema"`
	Version   string `json:"version"`
	Commit    string `json:"commit"` // "" where the build did not say
	Go        string `json:"go"`
	System    string `json:"system"`           // linux/amd64
	Kernel    string `json:"kernel"`           // release
	Recording int    `json:"recording_schema"` // of the recordings that it writes
}

func (a *app) versionCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "The version of slowpath, of what it was built with, and of the kernel",
		Example: `  slowpath version
  slowpath version --json`,
		Args: cli.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			v := versionInfo{
				Schema: versionSchema, Version: version, Commit: commit, Go: runtime.Version(),
				System: runtime.GOOS + "/" + runtime.GOARCH, Kernel: kernelRelease(),
				Recording: recording.SchemaVersion,
			}
			if asJSON {
				return layout.JSON(a.Stdout, "the version", v)
			}
			_, err := fmt.Fprintf(a.Stdout, "slowpath %s\ncommit: %s\nbuilt with: %s for %s\nkernel: %s\n"+
				"recordings: schema %d\n", v.Version, cmp.Or(v.Commit, "unknown"), v.Go, v.System, v.Kernel,
				v.Recording)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print "+versionSchema)
	return c
}

// kernelRelease is what uname -r prints.
func kernelRelease() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}
