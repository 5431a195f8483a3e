package main

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slowpath/internal/cli"
	"slowpath/internal/probing"
	"slowpath/internal/source"
	"slowpath/internal/source/probe"
)

func (a *app) probe() *cobra.Command {
	var f probing.Options
	c := &cobra.Command{
		Use:   "probe [TARGET...]",
		Short: "A steady, phased probe: kept and fresh connections, several hops side by side",
		Long: `probe makes a few calls at a steady rate and times them: on a connection that it keeps, and on fresh
ones phase by phase (dns, connect, tls, handshake, command). The schedule is absolute: a stall of one second counts
for every call that was due in it. Several targets are probed side by side, such as the load balancer, the proxy and
the server of one path; with -c, all nodes of a cluster.

It prints a line of latencies per target and interval, and a table at the end or after Ctrl-C. It judges
nothing; doctor does.

With --each it prints a line for each cycle instead: every --rate, the --steps one after the other, on a kept
connection, or with the step connect on a new one. The time of each step is without slowpath's own delay (OWN).
A new connection logs in with one write (AUTH, HELLO, SELECT, CLIENT SETNAME): the step auth, else HANDSHAKE.
--ping asks the kernel of the server's host beside each cycle, which answers while the server's process does not run.
--pin shows how long no thread of slowpath would have got the CPU during the cycle.`,
		Example: `  slowpath probe 10.0.0.5:6379
  slowpath probe lb:6379 proxy:6379 10.0.0.5:6379 --for 1m
  slowpath probe 10.0.0.5:6379 --rate 10/s --interval 5s
  slowpath probe 10.0.0.5:6379 --for 10s --json
  slowpath probe 10.0.0.5:6379 --each --ping --pin 0,1
  slowpath probe 10.0.0.5:6379 --each --steps connect,auth,get,set,del --write`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.Check(cmd.Flags().Changed); err != nil {
				return err
			}
			targets, err := a.Targets(cmd.Context(), args)
			if err != nil {
				return err
			}
			return probing.Run(cmd.Context(), a.Program, &f, targets, a.Where.Cluster)
		},
	}
	fl := c.Flags()
	fl.DurationVar(&f.Duration, "for", 0, "how long to probe; 0: until Ctrl-C (default)")
	fl.StringVar(&f.Rate, "rate", "50/s", "`calls` per second on the kept connection of each target")
	fl.StringVar(&f.FreshRate, "fresh-rate", "2/s", "fresh `connections` per second to each target")
	fl.DurationVar(&f.Interval, "interval", 15*time.Second, "a line of latencies per target every so often")
	fl.DurationVar(&f.Timeout, "timeout", source.DefaultTimeout, "for the first connection to each target")
	fl.StringVar(&f.Record, "record", "", "keep every call in this recording `file`, which must not exist")
	fl.BoolVar(&f.AsJSON, "json", false, "print "+probing.Schema+" documents, one per line")
	cli.Group(fl, "A line for each cycle", func() { addEachFlags(fl, &f.Each) })
	a.targetFlags(c)
	return c
}

func addEachFlags(fl *pflag.FlagSet, e *probing.Each) {
	fl.BoolVar(&e.On, "each", false, "a line for each cycle of --steps; 10/s unless --rate says otherwise")
	fl.StringVar(&e.StepsText, "steps", "", "what a cycle does: `connect,auth,ping,get`, with --write also set and "+
		"del (default ping,get, or set,get,del)")
	fl.BoolVar(&e.Write, "write", false, "let cycles SET and DEL a key of slowpath's own (slowpath:probe:...), which "+
		"expires after 60 s")
	fl.DurationVar(&e.Slow, "slow", probe.DefaultSlow, "mark cycles of this `duration` or more")
	fl.BoolVar(&e.Ping, "ping", false, "beside each cycle, a TCP connect and, where allowed, an ICMP echo")
	fl.IntSliceVar(&e.Pin, "pin", nil, "run on the first of these `CPUs`, and show for each of them how long slowpath "+
		"would not have run: 0,1")
}
