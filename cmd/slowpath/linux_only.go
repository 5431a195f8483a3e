package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
)

// What Linux is needed for, and why. Elsewhere slowpath does what it can without the kernel and the files of the host:
// commands_other.go.
const (
	shortBench  = "A load generator that is honest and says what limited the result"
	shortMatrix = "Client libraries against server versions: calls per second, latency, errors, findings"
	shortLab    = "Make real scenarios on real servers, and grade the verdicts"

	shortCapture = "Keep the newest packets of servers in a ring of files"

	shortServe = "Be there before the incident: watch without end, keep incidents, show them on a page"

	whyServe   = "what it sees comes from /proc and from eBPF programs"
	whyBench   = "its event loops are made of epoll"
	whyCapture = "packets come from its packet sockets"
	whyLab     = "its faults are made with cgroups, namespaces and signals"
)

// needsLinux is a command that says so, whatever its flags and arguments.
func needsLinux(use, short, why string) *cobra.Command {
	return &cobra.Command{
		Use:                use,
		Short:              short,
		Long:               fmt.Sprintf("%s needs Linux: %s.", use, why),
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if slices.Contains(args, "--help") {
				return cmd.Help()
			}
			return cli.MissingLinux("slowpath "+use, why)
		},
	}
}
