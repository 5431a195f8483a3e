//go:build linux

// Package serving is the agent as a service: its options and their file, the user that it becomes, its page, signals,
// and who is told of incidents.
package serving

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/pflag"

	"slowpath/internal/agent"
	"slowpath/internal/agent/metrics"
	"slowpath/internal/agent/notify"
	"slowpath/internal/agent/otlp"
	"slowpath/internal/agent/upload"
	"slowpath/internal/agent/web"
	"slowpath/internal/cli"
	"slowpath/internal/cli/named"
	"slowpath/internal/source/host"
)

// Program is the command line that an agent belongs to.
type Program struct {
	*cli.Program
	AddFlags func(*pflag.FlagSet, *Options) // defines the flags that set options
}

// Run is the agent from its begin to its end. The command line was parsed with flags into o.
func Run(ctx context.Context, a *Program, o *Options, flags *pflag.FlagSet, args []string) error {
	now, err := a.read(o, flags, args)
	if err == nil {
		err = now.Page.check(&now.page)
	}
	switch {
	case err != nil:
		return err
	case o.CheckOnly:
		_, err := fmt.Fprintln(a.Stdout, "the configuration is good")
		return err
	}
	s := &serving{checked: now, app: a, again: func() (*checked, error) { return a.readAgain(flags, args) }}
	return s.run(ctx)
}

// read reads the configuration into the flags, and checks all of them.
func (a *Program) read(o *Options, flags *pflag.FlagSet, args []string) (*checked, error) {
	o.Targets = args
	var c *configFile
	if o.ConfigPath != "" {
		var err error
		if c, err = readConfig(o.ConfigPath, flags, "config", "check-config", "help", "source", "tenants"); err != nil {
			return nil, err
		}
		if len(args) == 0 {
			o.Targets = c.targets
		}
	}
	out, err := o.check(a.Program)
	return out, c.locate(err, flags)
}

// readAgain is read for flags of its own, which have what the command line says.
func (a *Program) readAgain(flags *pflag.FlagSet, args []string) (*checked, error) {
	var o Options
	again := pflag.NewFlagSet("", pflag.ContinueOnError)
	a.AddFlags(again, &o)
	flags.Visit(func(f *pflag.Flag) {
		n := again.Lookup(f.Name)
		if n == nil {
			return
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			_ = n.Value.(pflag.SliceValue).Replace(list.GetSlice()) // was parsed already
		} else {
			_ = n.Value.Set(f.Value.String())
		}
		n.Changed = true
	})
	return a.read(&o, again, args)
}

// serving is an agent that runs, and what shows it to others.
type serving struct {
	*checked
	app     *Program
	again   func() (*checked, error) // reads the configuration again
	log     *agent.Log
	ag      *agent.Agent
	web     *web.Server
	metrics *metrics.Metrics
	notify  *notify.Notifier
	pushes  *otlp.Exporter   // nil: there is no collector
	upload  *upload.Uploader // nil: there is no bucket
}

func (s *serving) run(ctx context.Context) error {
	listener, err := takeAddress(&s.page)
	if err != nil {
		return err
	}
	defer listener.Close() // twice, unless what follows fails
	s.log = agent.NewLog(s.app.Stderr, s.LogFormat == "json")
	log.SetFlags(0)
	log.SetOutput(s.log) // of libraries
	if err := agent.MakeDirectory(s.Data); err != nil {
		return cli.Usage(err)
	}
	var files host.Root
	if os.Geteuid() == 0 && !s.NoHost {
		files.Spaces = host.HoldSpaces(files) // entering a namespace takes rights that are given up now
		defer files.Spaces.Close()
	}
	if err := s.stay(); err != nil {
		return err
	}
	s.ag, err = agent.Open(agent.Options{
		Settings: s.settings, Data: s.Data, Version: s.app.Version, Log: s.log, Files: files, Find: listening,
		Changed: s.changed,
	})
	if err != nil {
		return cli.Usage(err)
	}
	inside, outside, err := s.openDoor(listener)
	if err == nil {
		err = s.open(ctx)
	}
	if err != nil {
		return errors.Join(cli.Usage(err), s.ag.Close())
	}
	s.app.OwnLog()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	var served error
	all.Go(func() {
		served = s.show(ctx, inside, outside)
		cancel() // an agent whose page is gone is of no use: its service manager starts it again
	})
	all.Go(func() { s.onSignals(ctx) })
	s.log.Say("the page: %s", addressOf(s.page))
	err = s.ag.Run(ctx)
	all.Wait()
	return errors.Join(err, served)
}

// onSignals reads the configuration again on SIGHUP, and begins an incident on SIGUSR1.
func (s *serving) onSignals(ctx context.Context) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGUSR1)
	defer signal.Stop(signals)
	for {
		select {
		case <-ctx.Done():
			return
		case got := <-signals:
			if got == syscall.SIGHUP {
				s.reload()
			} else if id, err := s.ag.Trigger("SIGUSR1"); err != nil {
				s.log.Warn("SIGUSR1 begins no incident: %v", err)
			} else {
				s.log.OfIncident(id, "SIGUSR1")
			}
		}
	}
}

// reload takes a new configuration; one that is wrong changes nothing.
func (s *serving) reload() {
	next, err := s.again()
	if err != nil {
		s.ag.Problem("configuration", fmt.Sprintf("the new configuration is not used: %v", err))
		return
	}
	s.ag.Problem("configuration", "")
	if later := s.ag.Reload(next.settings); len(later) > 0 {
		s.log.Warn("read again; these need a restart of the agent: %q", later)
		return
	}
	s.log.Say("the configuration was read again")
}

// listening are the addresses of the servers that listen on this host.
func listening() (addresses []string, err error) {
	for _, s := range named.Servers() {
		addresses = append(addresses, s.Address)
	}
	return addresses, nil
}
