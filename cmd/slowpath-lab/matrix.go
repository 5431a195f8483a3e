//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/grade"
	"slowpath/internal/lab/matrix"
)

// matrixFlags are those of matrix.
type matrixFlags struct {
	clients, servers, topology string
	quick, asJSON              bool
	resume, page               string
	settings                   matrix.Settings

	sweep, use string // of pools
	repeat     int
}

func (a *app) matrix() *cobra.Command {
	f := matrixFlags{}
	full, quick, pools := matrix.Full(), matrix.Quick(), matrix.FullPools()
	c := &cobra.Command{
		Use:   "matrix",
		Short: "Client libraries against server versions: calls per second, latency, errors, findings",
		Long: `matrix measures each client library against each server version, standalone and in a cluster of three
masters and three replicas. Clients and servers are real programs of pinned versions, which it builds on first use
(lab clients, lab servers) and starts on loopback. Of each pair it says how many calls succeeded per second, how
late, what failed, what limited it, and what doctor finds when the pair runs once more.

Callers are workers of the client program itself, or with --http connections to its HTTP service. A client whose
toolchain is missing, or which cannot speak to a server, is a cell with the reason.

With --sweep pool=SIZES it is a sweep instead: clients that have a pool of connections, on one server, with pools of
these sizes (a list, or a range such as 10..1000). Callers borrow a connection for each call (borrow), or each keeps
one (per-thread). As many callers borrow as the largest pool has connections, unless --workers says otherwise. The
loads are made in rounds, in turns; a size is called better where the interval of the ratio by rounds says so. Each
row has the connections that the server really had.

With --resume FILE the cells are kept, and a run that was killed goes on where it was. Ctrl-C ends it and prints the
cells so far. Exit codes: 0 also with findings, 2 usage, 4 not a single cell has figures, 70 anything else.`,
		Example: `  slowpath matrix --clients go-redis-v6,go-redis-v8 --servers redis-6.0.16
  slowpath matrix --clients jedis,rueidis --topology cluster --quick --json
  slowpath matrix --resume night.json -o night.html    # all, for an hour
  slowpath matrix --clients ./my-client --servers valkey-8.1.1
  slowpath matrix --sweep pool=100,1000 --clients jedis
  slowpath matrix --sweep pool=50 --clients jedis    # borrow against per-thread`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.sweep != "" {
				return a.sweepPools(cmd, &f)
			}
			for _, only := range []string{"use", "repeat"} {
				if cmd.Flags().Changed(only) {
					return cli.Usagef("--%s is for --sweep: add it, or leave this out", only)
				}
			}
			f.settings.Masters, f.settings.Replicas, f.settings.Keys = full.Masters, full.Replicas, full.Keys
			f.settings.Quick = f.quick
			if f.quick {
				f.hurry(cmd, quick)
			}
			if f.settings.Watch > 0 {
				f.settings.WatchShare = full.WatchShare
			}
			return a.runMatrix(cmd.Context(), &f)
		},
	}
	fl := c.Flags()
	cli.Alias(fl, map[string]string{"html": "output"})
	fl.StringVar(&f.clients, "clients", "", "`names` of lab clients, separated by commas, or paths of your own "+
		"programs (default: all)")
	fl.StringVar(&f.servers, "servers", "", "`names` of lab servers, separated by commas (default: all)")
	fl.StringVar(&f.topology, "topology", strings.Join(matrix.Topologies(), ","), "standalone, cluster, or both")
	fl.BoolVar(&f.quick, "quick", false, fmt.Sprintf("short cells: --for %v --warmup %v --watch %v", quick.Duration,
		quick.Warmup, quick.Watch))
	fl.IntVar(&f.settings.Workers, "workers", full.Workers, "callers side by side, each with a connection of its pool")
	fl.BoolVar(&f.settings.HTTP, "http", false, "make the calls through the client's HTTP service, one per request")
	fl.DurationVar(&f.settings.Duration, "for", full.Duration, "how long calls of a cell are counted")
	fl.DurationVar(&f.settings.Warmup, "warmup", full.Warmup, "calls before that are not")
	fl.DurationVar(&f.settings.Watch, "watch", full.Watch, "how long doctor watches a cell, after that; 0s: it is "+
		"not asked")
	fl.StringVar(&f.sweep, "sweep", "", "pool=`SIZES`: clients with pools of several sizes, in place of the matrix")
	fl.StringVar(&f.use, "use", "", "with --sweep: borrow, per-thread, or both (default)")
	fl.IntVar(&f.repeat, "repeat", pools.Rounds, fmt.Sprintf("with --sweep: `rounds`, each --for %v --warmup %v",
		pools.Duration, pools.Warmup))
	fl.StringVar(&f.resume, "resume", "", "keep the cells in this `file`, and go on from those that it has")
	fl.StringVarP(&f.page, "output", "o", "", "write an HTML page to this `file`, too")
	fl.BoolVar(&f.asJSON, "json", false, "print "+matrix.Schema)
	return c
}

// hurry shortens what the command line does not say.
func (f *matrixFlags) hurry(cmd *cobra.Command, quick matrix.Settings) {
	for name, set := range map[string]func(){
		"for":    func() { f.settings.Duration = quick.Duration },
		"warmup": func() { f.settings.Warmup = quick.Warmup },
		"watch":  func() { f.settings.Watch = quick.Watch },
	} {
		if !cmd.Flags().Changed(name) {
			set()
		}
	}
}

func (a *app) runMatrix(ctx context.Context, f *matrixFlags) error {
	plan, err := matrix.NewPlan(f.clients, f.servers, f.topology)
	if err != nil {
		return cli.Usagef("--%w", err)
	}
	if err := f.settings.Check(); err != nil {
		return cli.Usage(err)
	}
	m := matrix.New(version, f.settings)
	if f.resume != "" {
		if m, err = matrix.Resume(f.resume, m); err != nil {
			return cli.Usagef("--resume %w", err)
		}
		// a name that cannot be written ends it now, and not after the first cell
		if err := m.Save(f.resume); err != nil {
			return cli.Usagef("--resume: %w", err)
		}
	}
	page, err := cli.NewFile("output", f.page)
	if err != nil {
		return err
	}
	if err := a.measureMatrix(ctx, f, plan, m); err != nil && ctx.Err() == nil {
		if page != nil {
			page.Close()
			cli.RemoveFile(f.page) // it holds nothing
		}
		return err
	}
	return a.printMatrix(f, m.Only(plan.Cells()), page)
}

func (a *app) measureMatrix(ctx context.Context, f *matrixFlags, plan matrix.Plan, m *matrix.Matrix) error {
	o, err := a.matrixOptions(ctx)
	if err != nil {
		return err
	}
	exe, err := slowpath()
	if err != nil {
		return err
	}
	o.Plan, o.Keep, o.Doctor = plan, f.resume, matrix.Doctor(grade.DoctorProcess(exe))
	if todo := plan.Todo(m); len(todo) > 0 {
		a.Say(fmt.Sprintf("cells to measure: %d, about %v where all programs are built; Ctrl-C ends it with "+
			"those so far", len(todo), matrix.Expected(todo, m.Settings).Round(time.Second)))
	}
	defer a.ProgressDone()
	return matrix.Run(a.steps(ctx, "the cells so far follow"), o, m)
}

func (a *app) matrixOptions(ctx context.Context) (o matrix.Options, err error) {
	l, err := a.openLab(ctx, defaultServer, a.Stderr)
	if err != nil {
		return o, err
	}
	cache, err := clients.OpenCache("")
	return matrix.Options{Fleet: l.Fleet, Servers: l.Cache, Clients: cache, Log: a.Stderr, Done: a.Say}, err
}

func (a *app) printMatrix(f *matrixFlags, m *matrix.Matrix, page *os.File) error {
	if !slices.ContainsFunc(m.Cells, matrix.Cell.Measured) {
		a.Code = cli.ExitMissing
	}
	if page != nil {
		if err := errors.Join(matrix.Page(page, m), page.Close()); err != nil {
			return err
		}
		a.Say(fmt.Sprintf("page: %s", filepath.Clean(f.page)))
	}
	if f.asJSON {
		return matrix.JSON(a.Stdout, m)
	}
	return matrix.Text(a.Stdout, m, a.Style())
}
