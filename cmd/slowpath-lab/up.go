//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slowpath/internal/cli"
	"slowpath/internal/format"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/scenario"
	"slowpath/internal/lab/servers"
)

func (a *app) up() *cobra.Command {
	var server, proxy string
	var masters, replicas, ranges int
	spec := fleet.Spec{Persistent: true}
	c := &cobra.Command{
		Use:   "up",
		Short: "Start servers on loopback that stay until lab down",
		Example: `  slowpath lab up
  slowpath lab up --server redis-6.0.16 --masters 3 --replicas 1
  slowpath lab up --tls --password secret
  slowpath lab up --name blue --server valkey-8.1.1    # beside others; lab down blue
  slowpath lab up --server ./redis-7.4.1/src/redis-server
  slowpath lab up --masters 3 --proxy twemproxy
  slowpath lab up --masters 2 --proxy envoy            # downloads Envoy at first, 36 MB, for amd64
  slowpath lab up --masters 2 --proxy codis            # a stand-in for Codis; lab migrate-slots
  slowpath lab up --masters 40 --replicas 1 --map 6    # one server that knows a map of 80 nodes`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := fleet.CheckName(spec.Fleet); err != nil {
				return cli.Usagef("--name %w", err)
			}
			if proxy != "" {
				if err := checkProxy(cmd.Flags(), proxy, masters); err != nil {
					return err
				}
			}
			if masters < 1 {
				return cli.Usagef("--masters %d: give at least 1", masters)
			}
			ctx := a.steps(cmd.Context(), "what was started is stopped")
			defer func() { err = a.notStarted(ctx, err) }()
			l, bin, err := a.openLabWith(ctx, server)
			if err != nil {
				return err
			}
			a.MayLeave("ended at once; what has started is stopped by: slowpath lab down " + spec.Fleet)
			switch {
			case ranges > 0:
				if _, err := l.Fleet.StartMap(ctx, bin, fleet.MapSpec{
					Masters: masters, Replicas: replicas, RangesPerMaster: ranges,
				}, spec); err != nil {
					return cli.Usage(err)
				}
			case proxy != "":
				if proxy == fleet.Codis {
					a.Say(codisNote)
				}
				_, err = l.Fleet.UpBehind(ctx, bin, proxy, masters, replicas, spec)
			default:
				if masters == 1 {
					masters = 0 // for the fleet, a number of masters means a cluster
				}
				_, err = l.Fleet.Up(ctx, bin, masters, replicas, spec)
			}
			switch {
			case errors.Is(err, fleet.ErrNoProxy):
				return fmt.Errorf("%w: %w", cli.ErrMissing, err)
			case err != nil:
				return badPort(err)
			}
			return a.printRunning(l)
		},
	}
	f := c.Flags()
	f.StringVar(&server, "server", defaultServer, "server `version`, see lab servers, or the path of a "+
		"redis-server or valkey-server of any version")
	f.StringVar(&spec.Fleet, "name", fleet.DefaultName, "`name` by which lab down stops them")
	f.IntVar(&masters, "masters", 1, "masters; more than one make a cluster")
	f.IntVar(&replicas, "replicas", 0, "replicas of each master")
	f.StringVar(&proxy, "proxy", "", "start a `proxy` in front of them: twemproxy or envoy, which spread keys "+
		"over --masters that know nothing of each other, haproxy, or codis, a "+
		"stand-in for Codis (lab codis-proxy --help)")
	f.IntVar(&ranges, "map", 0, "start one server only, which knows the map of such a cluster with so many `ranges` "+
		"of slots per master; its other nodes do not exist")
	f.IntVar(&spec.Port, "port", 0, "first `port` of a cluster, or that of a server (default: free ones)")
	f.BoolVar(&spec.AOF, "aof", false, "with an append-only file")
	f.BoolVar(&spec.TLS, "tls", false, "with TLS, by a certificate made for it")
	f.StringVar(&spec.Password, "password", "", "`password` of the default user")
	f.StringArrayVar(&spec.ACL, "acl", nil, "ACL line, e.g. 'user ops on >pw ~* +@all' (repeatable)")
	f.StringArrayVar(&spec.Config, "config", nil, "line of redis.conf (repeatable)")
	return c
}

// notStarted is the end of lab up. After Ctrl-C it is no error of a server that it did not start.
func (a *app) notStarted(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	a.ProgressDone()
	a.Code = cli.ExitInterrupted
	fmt.Fprintln(a.Stderr, "stopped: nothing was started that still runs")
	return nil
}

// codisNote is said before a stand-in for Codis starts.
const codisNote = "codis: a stand-in of the lab (1024 slots, migration key by key), not Codis itself; see: " +
	"slowpath lab codis-proxy --help"

// openLabWith opens the lab, and finds the server by its path, or by its version in the cache.
func (a *app) openLabWith(ctx context.Context, server string) (l *scenario.Lab, bin servers.Binary, err error) {
	version := server
	if servers.IsPath(server) {
		version = defaultServer
		if bin, err = a.binaryOf(ctx, nil, server); err != nil {
			return nil, bin, err
		}
	} else if _, err := servers.Lookup(servers.Name(server)); err != nil {
		return nil, bin, cli.Usagef("%w; or give the path of one, such as ./redis-server", err)
	}
	if l, err = a.openLab(ctx, version, a.Stderr); err == nil && version == server {
		bin, err = a.binaryOf(ctx, l, server)
	}
	return l, bin, err
}

// binaryOf finds a server by its path, or by its version in the cache of a lab.
func (a *app) binaryOf(ctx context.Context, l *scenario.Lab, server string) (servers.Binary, error) {
	if !servers.IsPath(server) {
		return l.Cache.Get(ctx, servers.Name(server), a.Stderr)
	}
	bin, err := fleet.ServerAt(ctx, server)
	if err != nil {
		return bin, cli.Usage(err)
	}
	return bin, nil
}

// badPort marks an error of --port as one of the command line.
func badPort(err error) error {
	if errors.Is(err, fleet.ErrPort) {
		return cli.Usage(err)
	}
	return err
}

// checkProxy refuses what proxies cannot have behind them.
func checkProxy(given *pflag.FlagSet, proxy string, masters int) error {
	if known := []string{fleet.Twemproxy, fleet.HAProxy, fleet.Envoy, fleet.Codis}; !slices.Contains(known, proxy) {
		return cli.Usagef("--proxy %q: give one of: %s", proxy, strings.Join(known, ", "))
	}
	for _, name := range []string{"map", "tls", "password", "acl"} {
		if given.Changed(name) {
			return cli.Usagef("--proxy does not go with --%s: the lab's proxies log in nowhere, and know no "+
				"cluster and no TLS; leave out one of them", name)
		}
	}
	if proxy == fleet.HAProxy && masters > 1 {
		return cli.Usagef("--proxy haproxy with --masters %d: its callers would find another server's keys with each "+
			"connection; leave out --masters, or take twemproxy or envoy", masters)
	}
	return nil
}

func (a *app) down() *cobra.Command {
	return &cobra.Command{
		Use:   "down [NAME...]",
		Short: "Stop what lab up has started, and nothing else",
		Long: `down stops what lab up has started by these names, or without a name. What was started by other names,
or by other users of sudo, stays.`,
		Example: `  slowpath lab down
  slowpath lab down blue`,
		RunE: func(cmd *cobra.Command, names []string) error {
			l, err := a.openLab(cmd.Context(), defaultServer, a.Stderr)
			if err != nil {
				return err
			}
			if err := checkNames(l.Fleet, names); err != nil {
				return err
			}
			if len(names) == 0 {
				names = []string{fleet.DefaultName}
			}
			a.OnInterrupt("what still runs stays for the next slowpath lab down")
			done := a.Working("stopping %s", strings.Join(names, ", "))
			infos, err := l.Fleet.Down(cmd.Context(), names...)
			done()
			fmt.Fprintf(a.Stdout, "stopped %s\n", format.Count(len(infos), "server"))
			if left, _ := l.Fleet.Names(); len(left) > 0 && err == nil {
				a.Say(fmt.Sprintf("still there: %s", strings.Join(left, ", ")))
			}
			return err
		},
	}
}

// checkNames refuses names by which this user has started nothing.
func checkNames(f *fleet.Fleet, names []string) error {
	known, err := f.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		switch {
		case slices.Contains(known, name):
		case len(known) == 0:
			return cli.Usagef("nothing of yours is named %q: lab up has started nothing; see: slowpath lab list", name)
		default:
			return cli.Usagef("nothing of yours is named %q; give one of: %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}
