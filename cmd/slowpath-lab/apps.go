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
	var asJSON bool
	c := &cobra.Command{
		Use:   "apps",
		Short: "List, build and run real applications",
		Long: "apps are task queues, sites and services on public frameworks, with their usual configuration. They " +
			"are built into a cache on first use. docs/apps.md has what each sends and how it reports.",
		Example: `  slowpath lab apps
  slowpath lab apps build celery bullmq
  slowpath lab apps run celery 127.0.0.1:6379 --for 10s`,
		Args: cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cache, err := apps.OpenCache("")
			if err != nil {
				return err
			}
			return a.listApps(appRows(cmd.Context(), cache), asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print slowpath.apps/v1")
	c.AddCommand(a.appsBuild(), a.appsRun())
	return c
}

// appRow is an application as slowpath.apps/v1 has it.
type appRow struct {
	Name      apps.Name `json:"name"`
	Title     string    `json:"title"`
	Language  string    `json:"language"`
	Libraries string    `json:"libraries"`
	Commands  string    `json:"commands"`
	Rate      float64   `json:"operations_per_second"`
	Twemproxy bool      `json:"twemproxy"`
	TLS       bool      `json:"tls"`
	Built     bool      `json:"built"`
	Missing   string    `json:"missing,omitempty"` // the tool, and how it is installed
}

func (r appRow) state() string {
	switch {
	case r.Missing != "":
		return r.Missing
	case r.Built:
		return "built"
	}
	return "built on first use"
}

func appRows(ctx context.Context, cache *apps.Cache) []appRow {
	var rows []appRow
	for _, x := range apps.Catalogue() {
		r := appRow{
			Name: x.Name, Title: x.Title, Language: x.Language, Libraries: x.Libraries, Commands: x.Commands,
			Rate: x.Rate, Twemproxy: x.Twemproxy, TLS: x.TLS, Built: cache.Built(x),
		}
		if err := x.Tool(ctx); err != nil {
			r.Missing = err.Error()
		}
		rows = append(rows, r)
	}
	return rows
}

func (a *app) listApps(rows []appRow, asJSON bool) error {
	if asJSON {
		return layout.JSON(a.Stdout, "the result", struct {
			Schema string   `json:"schema"`
			Apps   []appRow `json:"apps"`
		}{"slowpath.apps/v1", rows})
	}
	var cells [][]string
	for _, r := range rows {
		cells = append(cells, []string{string(r.Name), r.Language, r.Libraries, r.state()})
	}
	p := layout.New(a.listStyle())
	p.Table([]string{"NAME", "LANGUAGE", "LIBRARIES", "STATE"}, cells)
	return p.To(a.Stdout, "the list")
}

func (a *app) appsBuild() *cobra.Command {
	return &cobra.Command{
		Use:     "build [NAME...]",
		Short:   "Build applications into the cache",
		Example: "  slowpath lab apps build celery spring-session",
		RunE: func(cmd *cobra.Command, args []string) error {
			cache, err := apps.OpenCache("")
			if err != nil {
				return err
			}
			names, err := appNames(args)
			if err != nil {
				return err
			}
			ctx := a.steps(cmd.Context(), "what is ready stays in the cache")
			return build(a.Stdout, names, func(name apps.Name) error {
				defer a.ProgressDone()
				_, err := cache.Get(ctx, name, a.Stderr)
				return err
			})
		},
	}
}

// knownApps are the names of all applications.
func knownApps() (list []string) {
	for _, x := range apps.Catalogue() {
		list = append(list, string(x.Name))
	}
	return list
}

// appNames are those of the arguments, or all.
func appNames(args []string) ([]apps.Name, error) {
	var names []apps.Name
	for _, arg := range args {
		if _, err := apps.Lookup(apps.Name(arg)); err != nil {
			return nil, cli.Usage(err)
		}
		names = append(names, apps.Name(arg))
	}
	if len(args) == 0 {
		for _, x := range apps.Catalogue() {
			names = append(names, x.Name)
		}
	}
	return names, nil
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
