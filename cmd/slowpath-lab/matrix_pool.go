//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/format"
	"slowpath/internal/lab/matrix"
	"slowpath/internal/load/experiment"
)

// checkPool reads what a sweep of pools is to do, and refuses what is for the matrix only.
func (f *matrixFlags) checkPool(cmd *cobra.Command) (*matrix.PoolSweep, error) {
	for _, other := range []string{"quick", "http", "watch", "resume", "output"} {
		if cmd.Flags().Changed(other) {
			return nil, cli.Usagef("--sweep does not go with --%s: leave out one of them", other)
		}
	}
	name, values, _ := strings.Cut(f.sweep, "=")
	if name != "pool" {
		return nil, cli.Usagef("--sweep %q: give pool=SIZES such as pool=100,1000", f.sweep)
	}
	sizes, err := experiment.ParseValues(values)
	if err != nil {
		return nil, cli.Usagef("--sweep %q: %w", f.sweep, err)
	}
	plan, err := matrix.NewPoolPlan(f.clients, f.use, sizes)
	if err != nil {
		return nil, cli.Usagef("--%w", err)
	}
	server, topology, err := f.poolServer(cmd)
	if err != nil {
		return nil, err
	}
	s, err := matrix.NewPoolSweep(version, plan, f.poolSettings(cmd, plan), server, topology)
	if err != nil {
		return nil, cli.Usage(err)
	}
	return s, nil
}

// poolSettings are the usual ones where the command line says nothing: as many callers borrow as the largest pool has
// connections.
func (f *matrixFlags) poolSettings(cmd *cobra.Command, plan matrix.PoolPlan) matrix.PoolSettings {
	s := matrix.FullPools()
	s.Workers, s.Rounds = plan.Sizes[len(plan.Sizes)-1], f.repeat
	if cmd.Flags().Changed("workers") {
		s.Workers = f.settings.Workers
	}
	if cmd.Flags().Changed("for") {
		s.Duration = f.settings.Duration
	}
	if cmd.Flags().Changed("warmup") {
		s.Warmup = f.settings.Warmup
	}
	return s
}

// poolServer is the server of a sweep. Its rows can be compared since it has one.
func (f *matrixFlags) poolServer(cmd *cobra.Command) (server, topology string, err error) {
	if !cmd.Flags().Changed("servers") {
		f.servers = defaultServer
	}
	if !cmd.Flags().Changed("topology") {
		f.topology = matrix.Standalone
	}
	p, err := matrix.NewPlan(f.clients, f.servers, f.topology)
	switch {
	case err != nil:
		return "", "", cli.Usagef("--%w", err)
	case len(p.Servers) > 1:
		return "", "", cli.Usagef("--sweep: %d servers; name one with --servers", len(p.Servers))
	case len(p.Topologies) > 1:
		return "", "", cli.Usagef("--sweep: %d topologies; name one with --topology", len(p.Topologies))
	}
	return p.Servers[0], p.Topologies[0], nil
}

// sweepPools makes the sweep and prints it.
func (a *app) sweepPools(cmd *cobra.Command, f *matrixFlags) error {
	s, err := f.checkPool(cmd)
	if err != nil {
		return err
	}
	if err := a.makePools(cmd.Context(), s); err != nil {
		return err
	}
	if !s.Measured() {
		a.Code = cli.ExitMissing
	}
	if f.asJSON {
		return matrix.PoolJSON(a.Stdout, s)
	}
	return matrix.PoolText(a.Stdout, s, a.Style())
}

func (a *app) makePools(ctx context.Context, s *matrix.PoolSweep) error {
	o, err := a.matrixOptions(ctx)
	if err != nil {
		return err
	}
	a.Say(fmt.Sprintf("%s of %s, about %v where all programs are built; Ctrl-C ends it with the rounds so far",
		format.Count(s.Settings.Rounds, "round"), format.Count(len(s.Rows), "row"),
		matrix.ExpectedPools(s.Rows, s.Settings).Round(time.Second)))
	defer a.ProgressDone()
	return matrix.SweepPools(a.steps(ctx, "the rounds so far follow"), o, s)
}
