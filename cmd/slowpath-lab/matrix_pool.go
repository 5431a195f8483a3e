//go:build linux

package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/format"
	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/matrix"
	"slowpath/internal/load/experiment"
)

// checkPool reads what a sweep of pools is to do, and refuses what is for the matrix only.
func (f *matrixFlags) checkPool(cmd *cobra.Command) (plan matrix.PoolPlan, s *matrix.PoolSweep, err error) {
	for _, other := range []string{"quick", "http", "watch", "resume", "output"} {
		if cmd.Flags().Changed(other) {
			return plan, nil, cli.Usagef("--sweep does not go with --%s: leave out one of them", other)
		}
	}
	name, values, _ := strings.Cut(f.sweep, "=")
	if name != "pool" {
		return plan, nil, cli.Usagef("--sweep %q: give pool=SIZES such as pool=100,1000", f.sweep)
	}
	if plan.Sizes, err = experiment.ParseValues(values); err != nil {
		return plan, nil, cli.Usagef("--sweep %q: %w", f.sweep, err)
	}
	if plan.Modes, err = chosen("use", f.use, matrix.PoolModes(), func(name string) error {
		if !slices.Contains(matrix.PoolModes(), name) {
			return fmt.Errorf("unknown use %q; known: %s", name, strings.Join(matrix.PoolModes(), " "))
		}
		return nil
	}); err != nil {
		return plan, nil, err
	}
	for _, c := range clients.Catalogue() {
		if c.Pool {
			plan.Clients = append(plan.Clients, string(c.Name))
		}
	}
	if plan.Clients, err = chosen("clients", f.clients, plan.Clients, knownClient); err != nil {
		return plan, nil, err
	}
	s = &matrix.PoolSweep{
		Schema: matrix.PoolSchema, Version: version, Start: time.Now().UTC(), CPUs: runtime.NumCPU(),
		Settings: f.poolSettings(cmd, plan),
	}
	if s.Server, s.Topology, err = f.poolServer(cmd); err != nil {
		return plan, nil, err
	}
	if err := s.Settings.Check(plan); err != nil {
		return plan, nil, cli.Usage(err)
	}
	s.Rows = plan.Rows(s.Settings)
	return plan, s, nil
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
	p, err := f.plan()
	switch {
	case err != nil:
		return "", "", err
	case len(p.Servers) > 1:
		return "", "", cli.Usagef("--sweep: %d servers; name one with --servers", len(p.Servers))
	case len(p.Topologies) > 1:
		return "", "", cli.Usagef("--sweep: %d topologies; name one with --topology", len(p.Topologies))
	}
	return p.Servers[0], p.Topologies[0], nil
}

// sweepPools makes the sweep and prints it.
func (a *app) sweepPools(cmd *cobra.Command, f *matrixFlags) error {
	_, s, err := f.checkPool(cmd)
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
	l, err := a.openLab(ctx, defaultServer, a.Stderr)
	if err != nil {
		return err
	}
	cache, err := clients.OpenCache("")
	if err != nil {
		return err
	}
	a.Say(fmt.Sprintf("%s of %s, about %v where all programs are built; Ctrl-C ends it with the rounds so far",
		format.Count(s.Settings.Rounds, "round"), format.Count(len(s.Rows), "row"),
		matrix.ExpectedPools(s.Rows, s.Settings).Round(time.Second)))
	ctx = a.steps(ctx, "the rounds so far follow")
	defer a.ProgressDone()
	return matrix.SweepPools(ctx, matrix.PoolOptions{
		Fleet: l.Fleet, Servers: l.Cache, Clients: cache, Log: a.Stderr,
		Begin: func(r matrix.PoolRow, round int) {
			a.Progress("round %d of %d: %s", round, s.Settings.Rounds, r)
		},
		End: func(r matrix.PoolRow, round int, c *matrix.Cell, err error) {
			a.ProgressDone()
			line := fmt.Sprintf("round %d of %d: %s: ", round, s.Settings.Rounds, r)
			if err != nil {
				line += err.Error()
			} else {
				line += fmt.Sprintf("%.0f calls/s, p99 %v, %s", c.RequestsPerSecond,
					time.Duration(c.P99Ns).Round(10*time.Microsecond), format.Count(c.Errors, "error"))
			}
			a.Say(line)
		},
	}, s)
}
