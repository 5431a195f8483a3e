package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/watching"
)

func (a *app) record() *cobra.Command {
	var w watchFlags
	var out string
	c := &cobra.Command{
		Use:   "record [TARGET...] -o FILE",
		Short: "Keep what the sources see in a file, for a verdict later or elsewhere",
		Long: `record watches as doctor does and keeps what it saw in a file, without a verdict. Ctrl-C ends it; the
file is whole then. Should record be killed, the file still opens: it lacks the last second.

The file holds no keys, values or passwords; docs/recording.md says what it does hold.`,
		Example: `  slowpath record 10.0.0.5:6379 --for 60s -o night.slowpath
  slowpath doctor night.slowpath`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return cli.Usage(errors.New("record needs a file: add -o FILE.slowpath"))
			}
			o, err := a.watched(cmd, &w, args)
			if err != nil {
				return err
			}
			f := watching.File{Path: out, MaxDisk: w.maxDisk}
			if err := watching.Record(cmd.Context(), a.CommandLine, o, f, "the recording is completed"); err != nil {
				return err
			}
			a.Say(fmt.Sprintf("recorded in %s; for the verdict: slowpath doctor %s", out, out))
			return nil
		},
	}
	w.add(c, 0)
	c.Flags().StringVarP(&out, "output", "o", "", "`file` to write, which must not exist")
	a.targetFlags(c)
	return c
}
