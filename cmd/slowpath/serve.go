//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slowpath/internal/agent"
	"slowpath/internal/agent/notify"
	"slowpath/internal/agent/otlp"
	"slowpath/internal/cli"
	"slowpath/internal/source/host"
)

func (a *app) serve() *cobra.Command {
	var s serveFlags
	var configPath string
	var checkOnly bool
	c := &cobra.Command{
		Use:   "serve --data DIR [TARGET...]",
		Short: shortServe,
		Long: `serve watches servers without end, keeps the last minutes in full detail and days in numbers, and makes
an incident of each time in which calls are slow or fail: with a recording that begins before it, and the verdict that
doctor gives of it. A page, an API and /metrics show them.

A TARGET is HOST:PORT, a unix socket, or a URL; without one it is all servers that listen on this host, also those that
start later. One that cannot be reached is tried again.

SIGUSR1 begins an incident, SIGHUP reads the configuration again, SIGTERM ends the agent in good order. The
configuration is YAML, with the names of the flags and "targets"; flags win. Of root, serve becomes the owner of --data,
and keeps the capabilities that a watch needs.`,
		Example: `  slowpath serve --data /var/lib/slowpath
  slowpath serve --data /var/lib/slowpath --slo p99=10ms 10.0.0.5:6379
  slowpath serve --config /etc/slowpath/slowpath.yaml --check-config`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed(flagPass) {
				return cli.Usagef("--pass: others can read it in ps: give --password-file FILE or REDISCLI_AUTH")
			}
			read := func() (*serving, error) { return a.configured(cmd, configPath, args) }
			now, err := readOnce(cmd, &s, configPath, args, a.Env)
			switch {
			case err != nil:
				return err
			case checkOnly:
				if err := now.checkPage(); err != nil {
					return err
				}
				_, err := fmt.Fprintln(a.Stdout, "the configuration is good")
				return err
			}
			return a.runServe(cmd.Context(), now, read)
		},
	}
	f := c.Flags()
	f.StringVar(&configPath, flagConfig, "", "`file` with the options, in YAML")
	f.BoolVar(&checkOnly, flagCheckConfig, false, "check the options and the configuration, and end")
	s.add(f)
	f.StringP(flagPass, "a", "", "")
	f.Lookup(flagPass).Hidden = true
	return c
}

// flagPass is that of other commands, which takes a password: it is refused here.
const flagPass = "pass"

// serving is what flags and configuration say.
type serving struct {
	*serveFlags
	settings agent.Settings
	token    string
	notified []notify.Receiver
	pushed   *otlp.Options // nil: nothing
}

// readOnce reads the configuration into the flags, and checks all of them.
func readOnce(cmd *cobra.Command, s *serveFlags, path string, args []string, env func(string) string,
) (*serving, error) {
	f := cmd.Flags()
	var c *config
	if path != "" {
		var err error
		if c, err = readConfig(path, f, flagConfig, flagCheckConfig, "help"); err != nil {
			return nil, err
		}
		if len(args) == 0 {
			args = c.targets
		}
	}
	out, err := s.serving(args, env)
	return out, c.locate(err, f)
}

// serving checks the flags.
func (s *serveFlags) serving(args []string, env func(string) string) (*serving, error) {
	if s.data == "" {
		return nil, cli.Usagef("serve needs a directory for what it keeps: add --data DIR, such as /var/lib/slowpath")
	}
	settings, err := s.settings(args, env)
	if err != nil {
		return nil, err
	}
	out := &serving{serveFlags: s, settings: settings}
	if s.web.tokenFile != "" {
		if out.token, err = readSecret("token-file", s.web.tokenFile); err != nil {
			return nil, err
		}
	}
	if out.notified, err = s.receivers(); err != nil {
		return nil, err
	}
	out.pushed, err = s.otlp.options()
	return out, err
}

// configured is readOnce for flags of its own, which have what the command line says: for a reload.
func (a *app) configured(cmd *cobra.Command, path string, args []string) (*serving, error) {
	var s serveFlags
	again := &cobra.Command{}
	s.add(again.Flags())
	cmd.Flags().Visit(func(f *pflag.Flag) {
		n := again.Flags().Lookup(f.Name)
		if n == nil || f.Value.Type() == "" {
			return
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			_ = n.Value.(pflag.SliceValue).Replace(list.GetSlice()) // was parsed already
		} else {
			_ = n.Value.Set(f.Value.String())
		}
		n.Changed = true
	})
	return readOnce(again, &s, path, args, a.Env)
}

// runServe is the agent from its begin to its end.
func (a *app) runServe(ctx context.Context, now *serving, read func() (*serving, error)) error {
	if err := now.checkPage(); err != nil {
		return err
	}
	certificate, err := now.tls()
	if err != nil {
		return err
	}
	listener, err := listenForPage(now.listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	now.listened(listener)
	log := agent.NewLog(a.Stderr, now.logFormat == "json")
	if err := agent.MakeDirectory(now.data); err != nil {
		return cli.Usage(err)
	}
	var files host.Root
	if os.Geteuid() == 0 && !now.noHost {
		files.Spaces = host.HoldSpaces(files) // entering a namespace takes rights that are given up now
		defer files.Spaces.Close()
	}
	if err := a.stay(now.data, log); err != nil {
		return err
	}
	parts := &serveParts{s: now, log: log}
	parts.ag, err = agent.Open(agent.Options{
		Settings: now.settings, Data: now.data, Version: version, Log: log, Files: files, Find: findServers,
		Changed: parts.changed,
	})
	if err != nil {
		return cli.Usage(err)
	}
	if err := parts.open(ctx, certificate); err != nil {
		return errors.Join(cli.Usage(err), parts.ag.Close())
	}
	a.OwnLog()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	var served error
	all.Go(func() {
		served = parts.run(ctx, listener)
		cancel() // an agent whose page is gone is of no use: its service manager starts it again
	})
	all.Go(func() { onSignals(ctx, parts.ag, log, read) })
	log.Say("the page: %s", now.url())
	err = parts.ag.Run(ctx)
	all.Wait()
	return errors.Join(err, served)
}

// onSignals reads the configuration again on SIGHUP, and begins an incident on SIGUSR1.
func onSignals(ctx context.Context, ag *agent.Agent, log *agent.Log, read func() (*serving, error)) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGUSR1)
	defer signal.Stop(signals)
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-signals:
			if s == syscall.SIGHUP {
				reload(ag, log, read)
			} else if id, err := ag.Trigger("SIGUSR1"); err != nil {
				log.Warn("SIGUSR1 begins no incident: %v", err)
			} else {
				log.OfIncident(id, "SIGUSR1")
			}
		}
	}
}

// reload takes a new configuration; one that is wrong changes nothing.
func reload(ag *agent.Agent, log *agent.Log, read func() (*serving, error)) {
	next, err := read()
	if err != nil {
		ag.Problem("configuration", fmt.Sprintf("the new configuration is not used: %v", err))
		return
	}
	ag.Problem("configuration", "")
	if later := ag.Reload(next.settings); len(later) > 0 {
		log.Warn("read again; these need a restart of the agent: %q", later)
		return
	}
	log.Say("the configuration was read again")
}

// listenForPage takes the address of the page.
func listenForPage(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, cli.Usagef("--listen %s: another process listens there, perhaps another slowpath; stop it, "+
			"or give another port", address)
	case err != nil:
		return nil, cli.Usagef("--listen %s: %w; give HOST:PORT, such as %s", address, err, defaultListen)
	}
	return l, nil
}

// findServers are the addresses of the servers that listen on this host.
func findServers() (addresses []string, err error) {
	for _, s := range foundServers() {
		addresses = append(addresses, s.address)
	}
	return addresses, nil
}
