package main

import (
	"github.com/spf13/cobra"

	"slowpath/internal/cli"
)

func (a *app) root() *cobra.Command {
	c := &cobra.Command{
		Use:   "slowpath",
		Short: "Why was a Redis or Valkey call slow?",
		Long: `slowpath tells why a Redis or Valkey call was slow: it watches a live server, accounts for the time
of every slow call, names the cause with proof, and gives the fix. It never changes the data or the settings of what
it watches.

Start with doctor.`,
		Example: `  slowpath doctor 10.0.0.5:6379      # watch for 30 s, say why calls were slow
  slowpath doctor 10.0.0.5:6379 --for 2m --record night.slowpath
  slowpath doctor night.slowpath     # the same verdict again, anywhere
  slowpath probe 10.0.0.5:6379       # a steady probe, phase by phase, live
  slowpath trace                     # the slow calls of this host, one by one
  slowpath explain slow-command      # what a cause is, and what ends it`,
		Version: version,
	}
	a.Prepare(c)
	c.AddCommand(a.doctor(), a.top(), a.record(), a.report(), a.compare(), a.fleet(), a.explainCause(), a.serve(),
		a.trace(), a.probe(), a.capture(), a.topology(), a.bench(), a.merge(), a.matrix(), a.lab(), a.versionCommand(),
		a.mcp(), a.schema(), a.completion(), a.ManCommand())
	a.addDoor(c)
	cli.InOrder(c)
	cli.Complete(c, completions, flagCompletions)
	return c
}
