//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/clients/programs/protocol"
	"slowpath/internal/report/layout"
	"slowpath/internal/wire/target"
)

// clientRun is what the flags of lab clients run say.
type clientRun struct {
	name     clients.Name
	options  clients.Options
	duration time.Duration
	warmup   time.Duration
	commands []string
	rate     string
	mode     string
	more     string // JSON of options
	http     bool
	serve    bool
	asJSON   bool
}

// clientEnd is how long a client may take to its end.
const clientEnd = 10 * time.Second

func (a *app) clientsRun() *cobra.Command {
	r := clientRun{}
	c := &cobra.Command{
		Use:   "run NAME ADDRESS...",
		Short: "Run one client program against servers, and say what it measured",
		Long: "run starts a client program, by its name or by the path of one of your own, lets it make calls, and " +
			"prints what it saw itself. With --http it is the HTTP service that the calls are made through, one per " +
			"request.",
		Example: `  slowpath lab clients run go-redis-v6 127.0.0.1:7000 --mode cluster --http
  slowpath lab clients run jedis 127.0.0.1:6379 --options '{"pool_size": 4}'
  slowpath lab clients run ./my-client 127.0.0.1:6379 --command 'GET k{n}'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return cli.Usagef("%s takes the NAME of a client and at least one ADDRESS; see: %s --help",
					cmd.CommandPath(), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			r.name, r.options.Addresses = clients.Name(args[0]), args[1:]
			if err := r.prepare(); err != nil {
				return cli.Usage(err)
			}
			return a.runClient(cmd.Context(), r)
		},
	}
	f := c.Flags()
	f.StringVar(&r.mode, "mode", "standalone", "how it connects: `MODE` standalone, cluster or ring")
	f.IntVar(&r.options.Workers, "workers", 20, "callers side by side; with --http, connections")
	f.StringVar(&r.rate, "rate", "", "calls of all workers, such as 500/s (default: as many as they can)")
	f.DurationVar(&r.duration, "for", 5*time.Second, "how long calls are counted")
	f.DurationVar(&r.warmup, "warmup", time.Second, "calls before that are not")
	f.IntVar(&r.options.Keys, "keys", 1000, "{n} in a command is a number below this")
	f.StringArrayVar(&r.commands, "command", []string{"GET slowpath:{n}"}, "a `command` of the mix (repeatable)")
	f.StringVar(&r.more, "options", "", "more options of docs/clients.md, as `JSON`")
	f.BoolVar(&r.http, "http", false, "make the calls through its HTTP service")
	f.BoolVar(&r.serve, "serve", false, "only start its HTTP service, until Ctrl-C")
	f.BoolVar(&r.asJSON, "json", false, "print what it measured as slowpath.client/v1")
	return c
}

// prepare makes options of the flags. All its errors are the user's.
func (r *clientRun) prepare() error {
	o := &r.options
	o.Mode, o.Duration, o.Warmup = protocol.Mode(r.mode), r.duration, r.warmup
	if err := r.aim(); err != nil {
		return err
	}
	for _, text := range r.commands {
		o.Commands = append(o.Commands, clients.Command{Args: strings.Fields(text)})
	}
	if r.rate != "" {
		rate, err := cli.ParseRate(r.rate)
		if err != nil {
			return fmt.Errorf("--rate %q: %w", r.rate, err)
		}
		o.Rate = rate
	}
	if r.more != "" {
		d := json.NewDecoder(bytes.NewReader([]byte(r.more)))
		d.DisallowUnknownFields()
		if err := d.Decode(o); err != nil {
			return fmt.Errorf("--options: %w", err)
		}
	}
	if o.Duration <= 0 {
		return fmt.Errorf("--for %v: give a time above 0", o.Duration)
	}
	if client, err := clients.Lookup(r.name); err == nil && !client.Has(o.Mode) {
		return fmt.Errorf("--mode %s: %s has %v", o.Mode, r.name, client.Modes)
	}
	if (r.http || r.serve) && o.Rate > 0 {
		return errors.New("--rate: requests of --http follow each other as fast as they are answered")
	}
	return o.Check()
}

// aim takes addresses and the password as redis-cli does. The programs have no TLS.
func (r *clientRun) aim() error {
	targets, err := (target.Options{}).Targets(r.options.Addresses, os.Getenv)
	if err != nil {
		return err
	}
	r.options.Addresses, r.options.Password, r.options.DB = nil, targets[0].Password, targets[0].DB
	for _, t := range targets {
		if t.TLS != nil || t.Network != "tcp" || t.User != "" {
			return fmt.Errorf("%s: the client programs connect by TCP, without TLS, as the default user", t)
		}
		r.options.Addresses = append(r.options.Addresses, t.Addr())
	}
	return nil
}

func (a *app) runClient(ctx context.Context, r clientRun) error {
	if err := clients.CheckName(r.name); err != nil {
		return cli.Usage(err)
	}
	cache, err := clients.OpenCache("")
	if err != nil {
		return err
	}
	ctx = a.steps(ctx, "what it measured so far follows")
	p, err := cache.Get(ctx, r.name, a.Stderr)
	a.ProgressDone()
	if err != nil {
		return missingTool(err)
	}
	if r.serve {
		return a.serveClient(ctx, p, r.options)
	}
	var sum clients.Summary
	done := a.Working("%s makes calls for %v", r.name, r.warmup+r.duration)
	if r.http {
		sum, err = p.Ask(ctx, os.TempDir(), r.options)
	} else {
		sum, err = p.Run(ctx, os.TempDir(), r.options)
	}
	done()
	if err != nil {
		return missingTool(err)
	}
	if r.asJSON {
		err = layout.JSONLine(a.Stdout, "the result", sum)
	} else {
		_, err = fmt.Fprintf(a.Stdout, "%s (%s), %s: %.0f calls/s\n%s\n", r.name, sum.Library, r.options.Mode,
			sum.PerSecondMean(), sum)
	}
	if sum.Calls == sum.Errors {
		a.Code = cli.ExitConnect
	}
	return err
}

func (a *app) serveClient(ctx context.Context, p clients.Program, o clients.Options) error {
	o.Workers, o.Duration = 0, 0
	service, err := p.Serve(ctx, os.TempDir(), o)
	if err != nil {
		return missingTool(err)
	}
	fmt.Fprintf(a.Stdout, "http://%s/ process %d\n", service.Addr(), service.PID)
	select {
	case <-ctx.Done():
	case <-service.Exited():
	}
	sum, err := service.End(clientEnd)
	if err != nil {
		return err
	}
	fmt.Fprintln(a.Stderr, sum)
	return nil
}
