//go:build linux

package main

import (
	"github.com/spf13/cobra"

	"slowpath/internal/benching"
	"slowpath/internal/load/workload"
)

func (a *app) bench() *cobra.Command {
	var f benching.Options
	c := &cobra.Command{
		Use:   "bench [TARGET…]",
		Short: shortBench,
		Long: `bench loads a server and measures every call. Without --rate the loop is closed: each connection
keeps --pipeline calls in flight, and the result is how fast the server goes. With --rate it is open: calls are due
by a schedule, whether or not others have come back, and latencies count from there, as users feel
them.

With --replay it sends the commands of a log: of redis-cli monitor, or of a recording. Each client of the log
has a connection, on which its requests keep their order; what could do harm, blocks, or belongs to a connection
alone is left out, and the result says so.

It reads and writes only keys that begin with slowpath:, and removes them at the end; --keep leaves them. Ctrl-C
ends the load and prints the result so far.

Exit codes: 0 done, and no bound of --fail-if was passed; 1 a bound was passed, --compare found something slower, no
rate holds --find-max, or --verify found a wrong value; 2 usage, or it cannot be told (too few calls or repeats, the
generator was late or the bottleneck); 3 no connection or login.

Names for --command: ` + workload.Named() + `.

A --command can be a template: {key} is the number of a key, {value} a value, {rand:LOW-HIGH} a random number,
{unique} a number that no other call has, {due} when the call was due. Several commands have ; between them. For
published messages that begin with {due}: the result says how long they took to reach subscribers.`,
		Example: `  slowpath bench 10.0.0.5:6379 --connections 50 --pipeline 16 --for 30s
  slowpath bench 10.0.0.5:6379 --rate 5000/s --connections 20 --for 1m
  slowpath bench 10.0.0.5:6379 --ratio 1:9 --prefill --value-size 1kb
  slowpath bench 10.0.0.5:6379 --ramp 1000/s..50000/s --for 1m --csv ramp.csv
  timeout 60 redis-cli monitor > day.log; slowpath bench 10.0.0.5:6379 --replay day.log --replay-speed 2
  slowpath bench 10.0.0.5:6379 --sweep connections=1..1000
  slowpath bench 10.0.0.5:6379 --find-max 'p99<1ms and errors<0.1%'
  slowpath bench 10.0.0.5:6379 --rate 5000/s --fail-if 'p99>1ms,errors>0.1%' --summary bench.xml
  slowpath bench 10.0.0.5:6379 --repeat 6 --json > before.json
  slowpath bench 10.0.0.5:6379 --compare before.json
  slowpath bench --compare-targets 10.0.0.5:6379 10.0.0.6:7000 proxy:10.0.0.7:22121`,
		Args: func(cmd *cobra.Command, args []string) error { return f.CheckOneTarget(cmd.CommandPath(), args) },
		RunE: func(cmd *cobra.Command, args []string) error {
			return benching.Run(cmd.Context(), a.CommandLine, &f, args)
		},
	}
	addBenchFlags(c, &f)
	a.targetFlags(c)
	return c
}
