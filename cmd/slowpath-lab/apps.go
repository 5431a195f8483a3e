//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/lab/apps"
	"slowpath/internal/lab/scenario"
	"slowpath/internal/report/layout"
	"slowpath/internal/wire/target"
)

func (a *app) apps() *cobra.Command {
	c := listing(a, &cobra.Command{
		Use:   "apps",
		Short: "List, build and run real applications",
		Long: "apps are task queues, sites and services on public frameworks, with their usual configuration. They " +
			"are built into a cache on first use. docs/apps.md has what each sends and how it reports.",
		Example: `  slowpath lab apps
  slowpath lab apps build celery bullmq
  slowpath lab apps run celery 127.0.0.1:6379 --for 10s`,
	}, apps.Schema, apps.OpenCache)
	c.AddCommand(building(a, &cobra.Command{
		Use:     "build [NAME...]",
		Short:   "Build applications into the cache",
		Example: "  slowpath lab apps build celery spring-session",
	}, programWidth, apps.Known, apps.Lookup, apps.OpenCache, toldMissing[apps.Program]), a.appsRun())
	return c
}

// appRun is what the flags of lab apps run say.
type appRun struct {
	options  apps.Options
	duration time.Duration
	asJSON   bool
}

func (a *app) appsRun() *cobra.Command {
	var r appRun
	c := &cobra.Command{
		Use:   "run NAME HOST:PORT",
		Short: "Run one application against a server, and say what its users saw",
		Long: "run starts an application, which reads and writes keys of its own on the server, and prints what its " +
			"operations took, as their callers saw it. REDISCLI_AUTH has the password.",
		Example: "  slowpath lab apps run django 127.0.0.1:6379 --for 10s --json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return cli.Usagef("%s takes the NAME of an application and the address of a server; see: %s --help",
					cmd.CommandPath(), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := apps.Lookup(apps.Name(args[0])); err != nil {
				return cli.Usage(err)
			}
			if r.duration <= 0 {
				return cli.Usagef("--for %v: give a time above 0", r.duration)
			}
			if err := r.aim(args[1]); err != nil {
				return cli.Usage(err)
			}
			return a.runApp(cmd.Context(), apps.Name(args[0]), r)
		},
	}
	f := c.Flags()
	f.DurationVar(&r.duration, "for", 10*time.Second, "how long it runs after its first operation")
	f.StringVar(&r.options.CACert, "cacert", "", "connect by TLS; `file` of the CA of the server's certificate")
	f.BoolVar(&r.options.Twemproxy, "twemproxy", false, "the server is a twemproxy")
	f.BoolVar(&r.asJSON, "json", false, "print lines of JSON, one per second and operation")
	return c
}

// aim takes the address and the password as redis-cli does.
func (r *appRun) aim(address string) error {
	targets, err := (target.Options{}).Targets([]string{address}, os.Getenv)
	if err != nil {
		return err
	}
	t := targets[0]
	if t.TLS != nil || t.Network != "tcp" || t.User != "" || t.DB != 0 {
		return fmt.Errorf("%s: applications connect by TCP, as the default user, to database 0; --cacert is for TLS", t)
	}
	r.options.Addr, r.options.Password = t.Addr(), t.Password
	return nil
}

func (a *app) runApp(ctx context.Context, name apps.Name, r appRun) (err error) {
	cache, err := apps.OpenCache("")
	if err != nil {
		return err
	}
	ctx = a.steps(ctx, "what its users saw so far follows")
	if _, err := cache.Get(ctx, name, a.Stderr); err != nil {
		return missingTool(err)
	}
	l, err := a.openLab(ctx, defaultServer, io.Discard) // its log would say again what is printed below
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close(context.WithoutCancel(ctx))) }()
	running, err := l.App(ctx, scenario.AppSpec{Name: name, Options: r.options})
	if err != nil {
		return missingTool(err)
	}
	a.Progress("%s runs for %v", name, r.duration)
	select {
	case <-ctx.Done():
	case <-time.After(r.duration):
	}
	a.Progress("ending %s", name)
	stats, stopErr := running.Stop()
	a.ProgressDone()
	if r.asJSON {
		for _, line := range stats.Lines {
			err = errors.Join(err, layout.JSONLine(a.Stdout, "a row", line))
		}
	} else {
		_, err = fmt.Fprintln(a.Stdout, stats)
	}
	return errors.Join(err, stopErr)
}
