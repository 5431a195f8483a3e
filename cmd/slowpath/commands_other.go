//go:build !linux

package main

import (
	"github.com/spf13/cobra"

	"slowpath/internal/source/tap"
)

func (a *app) bench() *cobra.Command   { return needsLinux("bench", shortBench, whyBench) }
func (a *app) matrix() *cobra.Command  { return needsLinux("matrix", shortMatrix, whyLab) }
func (a *app) capture() *cobra.Command { return needsLinux("capture", shortCapture, whyCapture) }
func (a *app) serve() *cobra.Command   { return needsLinux("serve", shortServe, whyServe) }
func (a *app) lab() *cobra.Command     { return needsLinux("lab", shortLab, whyLab) }

// foundServers: the files of other processes are those of Linux.
func foundServers() []foundServer { return nil }

// serverOf: check has refused a pid.
func (a *app) serverOf(_ *cobra.Command, _ int, args []string) ([]string, error) { return args, nil }

// traced: a recording can be traced, a live server cannot.
func (a *app) traced(*cobra.Command, int, []string) ([]tap.Node, []string, error) {
	return nil, nil, missingLinux("trace of a live server", whyTrace)
}
