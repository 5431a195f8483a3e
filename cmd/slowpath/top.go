package main

import (
	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/cli/named"
	"slowpath/internal/format"
	"slowpath/internal/top"
	"slowpath/internal/watching"
)

func (a *app) top() *cobra.Command {
	v := watching.LiveView{Verdict: watching.Verdict{CommandLine: a.CommandLine}}
	var w watchFlags
	var keep string
	c := &cobra.Command{
		Use:   "top [TARGET...]",
		Short: "What calls take now, whose they are, and what they wait for, live in the terminal",
		Long: `top watches as doctor does and shows each second what calls take, which callers and commands there are,
what slow calls wait for, and the verdict of the last half minute. Enter opens where the time of a slow
call went. Keys are listed by ?.

A TARGET is written as for doctor. The default is 127.0.0.1:6379 or, if nothing listens there and no password is
given, all servers on this host. The watch is recorded: s saves the recording, and q ends the watch and prints the
verdict of the whole watch.

Where stdout is no terminal, --json prints a document for each second, and the last one has the verdict of the whole
watch. Exit codes are those of doctor.`,
		Example: `  slowpath top 10.0.0.5:6379
  slowpath top --record incident.slowpath
  slowpath top 127.0.0.1:6379 --for 1m --json > seconds.ndjson`,
		RunE: func(cmd *cobra.Command, args []string) error {
			files, err := named.Files(args)
			if err == nil && len(files) > 0 {
				err = cli.Usagef("%s is a file, and top watches servers: slowpath doctor %s", files[0],
					format.Shell(files[0]))
			}
			if err == nil {
				err = v.Check()
			}
			if err != nil {
				return err
			}
			if w.processes.PID == 0 {
				args = a.OrFound(args)
			}
			o, err := a.watched(cmd, &w, args)
			if err != nil {
				return err
			}
			o.MainThreads = false // no view shows them
			return v.Watch(cmd.Context(), o, watching.File{Path: keep, MaxDisk: w.maxDisk})
		},
	}
	w.add(c, 0)
	c.Flags().BoolVar(&v.AsJSON, "json", false, "print a "+top.Schema+" document for each second, without a screen")
	c.Flags().StringVar(&keep, "record", "", "keep the recording in this `file`, which must not exist")
	a.targetFlags(c)
	return c
}
