//go:build !linux

package main

import (
	"github.com/spf13/cobra"

	"slowpath/internal/bucket"
	"slowpath/internal/cli"
	"slowpath/internal/serving"
)

func (a *app) bench() *cobra.Command   { return needsLinux("bench", shortBench, whyBench) }
func (a *app) matrix() *cobra.Command  { return needsLinux("matrix", shortMatrix, whyLab) }
func (a *app) capture() *cobra.Command { return needsLinux("capture", shortCapture, whyCapture) }
func (a *app) lab() *cobra.Command     { return needsLinux("lab", shortLab, whyLab) }

// serve shows what agents have sent; to watch takes Linux.
func (a *app) serve() *cobra.Command {
	var (
		page   serving.Page
		source sourceFlags
		b      = bucket.Options{Flags: "--recordings"}
	)
	c := &cobra.Command{
		Use:                "serve --source SOURCE",
		Short:              shortServe,
		Long:               "serve needs Linux: " + whyServe + ". The page of many hosts (--source) does not.",
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		RunE: func(cmd *cobra.Command, args []string) error {
			if source.name == "" {
				return cli.MissingLinux("slowpath serve", whyServe)
			}
			return a.serveSource(cmd, args, source, page, b)
		},
	}
	addListen(c.Flags(), &page)
	addPageFlags(c.Flags(), &page)
	addSourceFlags(c.Flags(), &source)
	addRecordingsPlace(c.Flags(), &b)
	return c
}

func (a *app) addDoor(*cobra.Command) {} // serve has no processes here
