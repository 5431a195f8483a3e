package main

import (
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slowpath/internal/cli"
	"slowpath/internal/cli/named"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/watching"
)

func (a *app) doctor() *cobra.Command {
	v := watching.Verdict{CommandLine: a.CommandLine}
	var w watchFlags
	var keep string
	var texts bool
	c := &cobra.Command{
		Use:   "doctor [TARGET...|FILE...]",
		Short: "Watch a server, account for its slow calls, name the cause and the fix",
		Long: `doctor watches one or more servers, or reads a recording, and says why calls were slow.

A TARGET is HOST:PORT, a unix socket, or a redis://, rediss:// or unix:// URL; without one it is 127.0.0.1:6379.
Several targets are hops of one path (load balancer, proxy, server) or seeds of one cluster.

A FILE is a recording. Several recordings of the same time, made as root on the servers' hosts and on their clients'
hosts, get one verdict: calls that both ends saw are joined, and the network's part of a call is the client's time for
it minus the server's. A FILE may also be a packet capture (pcap, pcapng, gzip or zstd). The files of a ring are read
as one capture, and captures of both ends of the same connections are joined.

With --text each FILE is a pasted text, such as an issue. doctor finds in it what INFO, SLOWLOG GET, LATENCY LATEST or
HISTORY, CLIENT LIST and CONFIG GET printed, with or without prompts, and says which command would show more.

On a terminal a verdict that is longer than the screen goes to a pager: $SLOWPATH_PAGER, else $PAGER, else less.

Ctrl-C ends the watch early and still prints the verdict; a second one ends at once, as the first one does while a
FILE is read. Exit codes: 0 healthy or inconclusive, 1 findings (with --expect-healthy also inconclusive), 2 usage, 3
cannot connect or log in, 70 anything else, 130 ended at once.`,
		Example: `  slowpath doctor 10.0.0.5:6379
  REDISCLI_AUTH=secret slowpath doctor --user ops rediss://cache.example:6380
  slowpath doctor 127.0.0.1:6379 --for 8s --json
  slowpath doctor 127.0.0.1:6379 --for 5m --until-sure
  slowpath doctor night.slowpath
  slowpath doctor redis.pcap
  slowpath doctor night.slowpath --html night.html
  slowpath doctor app-*.pcapng redis-*.pcapng
  slowpath doctor --text issue.md slowlog.txt
  slowpath doctor app-host.slowpath redis-host.slowpath`,
		RunE: func(cmd *cobra.Command, args []string) error {
			var files []string
			var err error
			if !texts {
				files, err = named.Files(args)
			} else if len(args) == 0 {
				err = cli.Usagef("--text needs files, or - for the standard input")
			}
			if err == nil && (texts || len(files) > 0) {
				err = onlyFor(cmd, "json", "brief", "expect-healthy", htmlFlag, "text")
			}
			if err == nil {
				err = v.Page.Open(&a.Scratch)
			}
			defer v.Page.Discard()
			switch {
			case err != nil:
				return err
			case texts:
				return v.Texts(args)
			case len(files) > 0:
				return v.Files(cmd.Context(), files)
			}
			o, err := a.watched(cmd, &w, args)
			if err != nil {
				return err
			}
			return v.Watch(cmd.Context(), o, watching.File{Path: keep, MaxDisk: w.maxDisk})
		},
	}
	w.add(c, 30*time.Second)
	c.Flags().BoolVar(&v.AsJSON, "json", false, "print "+verdict.Schema)
	c.Flags().BoolVar(&v.Brief, "brief", false, "print only what is read first: the verdict, its proof, and the fix")
	c.Flags().BoolVar(&v.UntilSure, "until-sure", false, "end the watch as soon as one cause explains most of the "+
		"lost time and is sure; --for is the longest it takes")
	addPageFlag(c, &v.Page)
	c.Flags().BoolVar(&v.ExpectHealthy, "expect-healthy", false, "exit with 1 unless the verdict is healthy, also "+
		"where it is inconclusive: for pipelines")
	c.Flags().BoolVar(&texts, "text", false, "each FILE is a text with what redis-cli printed: INFO, SLOWLOG GET, "+
		"LATENCY, CLIENT LIST, CONFIG GET; - is the standard input")
	c.Flags().StringVar(&keep, "record", "", "keep the recording in this `file`, which must not exist")
	a.targetFlags(c)
	return c
}

const htmlFlag = "html"

func addPageFlag(c *cobra.Command, p *watching.Page) {
	c.Flags().StringVar(&p.Path, htmlFlag, "", "also write the report into this `file`, as one HTML page that needs "+
		"nothing from elsewhere")
}

// onlyFor refuses the flags of a watch where a recording is read: what was not watched cannot be asked for later.
func onlyFor(cmd *cobra.Command, allowed ...string) error {
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(allowed, f.Name) && err == nil {
			err = cli.Usagef("--%s has no effect on a recording: leave it out", f.Name)
		}
	})
	return err
}
