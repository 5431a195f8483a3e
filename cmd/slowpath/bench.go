package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"slowpath/internal/clock"
	"slowpath/internal/load"
	"slowpath/internal/workload"
)

func (a *app) bench() *cobra.Command {
	o := load.Options{Arrivals: load.Uniform}
	var command, rate string
	var keys uint64
	var size int
	c := &cobra.Command{
		Use:   "bench [TARGET]",
		Short: "A load generator that is honest and says what limited the result",
		RunE: func(cmd *cobra.Command, args []string) error {
			targets, err := a.targets(cmd.Context(), args)
			if err != nil {
				return err
			}
			o.Target, o.Cluster = targets[0], a.where.Cluster
			o.Clock = clock.New()
			if o.Workload, err = workload.Simple(command, keys, size); err != nil {
				return usage(err)
			}
			if rate != "" {
				r, err := parseRate(rate)
				if err != nil {
					return usagef("--rate %q: %w", rate, err)
				}
				o.Schedule = []load.Stretch{{Lasts: o.Duration, From: r, To: r}}
			}
			return a.runBench(cmd.Context(), o)
		},
	}
	fl := c.Flags()
	fl.IntVar(&o.Connections, "connections", 50, "connections")
	fl.IntVar(&o.Pipeline, "pipeline", 1, "calls in flight per connection")
	fl.IntVar(&o.Threads, "threads", 1, "threads")
	fl.Int64Var(&o.Requests, "requests", 0, "calls")
	fl.DurationVar(&o.Duration, "for", 0, "how long")
	fl.StringVar(&command, "command", "get", "command")
	fl.StringVar(&rate, "rate", "", "rate")
	fl.Uint64Var(&keys, "keys", 1000000, "keys")
	fl.IntVar(&size, "value-size", 3, "bytes")
	fl.BoolVar(&o.BusyPoll, "busy-poll", false, "spin")
	fl.BoolVar(&o.Batch, "batch", false, "batch")
	fl.StringVar(&o.ReadFrom, "read-from", load.Master, "whom reads are sent to: `"+load.Master+"`, "+load.Replica+" or "+load.Any)
	a.targetFlags(c)
	return c
}

func (a *app) runBench(ctx context.Context, o load.Options) error {
	var mu sync.Mutex
	var sum *load.Tally
	o.OnTally = func(t *load.Tally) {
		mu.Lock()
		defer mu.Unlock()
		if sum == nil {
			sum = load.NewTally(len(o.Workload.Ops), o.Open())
		}
		sum.Add(t)
	}
	r, err := load.Run(ctx, o)
	if err != nil {
		return err
	}
	h := sum.Ops[0].Service
	if o.Open() {
		h = sum.Ops[0].Response
		fmt.Fprintf(a.stdout, "late p50 %d p99 %d max %d\n", sum.Late.ValueAtQuantile(50), sum.Late.ValueAtQuantile(99), sum.Late.Max())
	}
	seconds := float64(r.EndNs-r.StartNs) / 1e9
	if len(sum.Nodes) > 0 {
		fmt.Fprintf(a.stdout, "nodes %v again %v unanswered %d\n", sum.Nodes, sum.Again, sum.Unanswered)
	}
	fmt.Fprintf(a.stdout, "%.0f rps %.3fs p50 %v p99 %v max %v errors %v lost %d waits %d reads %d writes %d per call %.2f misses %d inflight %d unsent %d\n", float64(sum.Calls())/seconds, seconds, time.Duration(h.ValueAtQuantile(50)),
		time.Duration(h.ValueAtQuantile(99)), time.Duration(h.Max()), sum.Errors, sum.Lost, sum.Waits, sum.Reads, sum.Writes, float64(sum.Waits+sum.Reads+sum.Writes)/float64(sum.Calls()), sum.Ops[0].Misses, r.InFlight, r.Unsent)
	return nil
}
