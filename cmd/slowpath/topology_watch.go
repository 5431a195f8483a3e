package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"slowpath/internal/cli"
	"slowpath/internal/format"
	"slowpath/internal/report/layout"
	"slowpath/internal/source"
	"slowpath/internal/topology/watch"
)

func (a *app) topologyWatch() *cobra.Command {
	var f topologyWatchFlags
	c := &cobra.Command{
		Use:   "watch [TARGET...]",
		Short: "Slot moves, failovers, joins, leaves, dead nodes, as they are seen",
		Long: `watch follows the map of a cluster and prints each change as soon as it is seen: slot-moved,
failover-started, failover-ended, node-joined, node-left, node-unreachable, node-back. A TARGET is any node of the
cluster; several are seeds of the same one, of which one must answer.

It spares the cluster. It asks replicas first, where they hear of moved slots at once (from Redis 6.2 on), else
every master; with the command that was measured to cost them least; and reads the whole map only when the hash of a
reply has changed. It stays below 0.2 % of a node's CPU and below --max-commands for the cluster, is quicker while
something happens, and finds nodes again that die, join or change their address.

With --publish it publishes the changes on every node: on __cluster__:moved "slot host:port"
and on __cluster__:failover "ranges host:port". One watcher then replaces the polling of all clients;
examples/ has clients of go-redis, Lettuce and redis-py that listen. Messages are at most 1000 per second and come on
top of --max-commands.

Ctrl-C ends it with a summary on stderr. Exit codes: 0 whatever was seen, 2 usage or no cluster, 3 cannot connect or
log in, or the user may not ask for the map, 70 anything else.`,
		Example: `  slowpath topology watch 10.0.0.5:6379
  slowpath topology watch 10.0.0.5:6379 10.0.1.5:6379 --json | jq -c 'select(.kind=="slot-moved")'
  slowpath topology watch 10.0.0.5:6379 --publish     # then: redis-cli -h 10.0.0.5 subscribe __cluster__:moved
  slowpath topology watch 10.0.0.5:6379 --user watch --for 1h`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runTopologyWatch(cmd.Context(), &f, args) },
	}
	fl := c.Flags()
	fl.DurationVar(&f.duration, "for", 0, "how long to watch; 0: until Ctrl-C (default)")
	fl.StringVar(&f.most, "max-commands", "100/s", "`commands` to the whole cluster, never more")
	fl.BoolVar(&f.publish, "publish", false, "publish the changes on channels of the cluster, too")
	fl.BoolVar(&f.asJSON, "json", false, "print a JSON object per line")
	a.targetFlags(c)
	return c
}

type topologyWatchFlags struct {
	duration        time.Duration
	most            string
	publish, asJSON bool
}

// The bounds of --max-commands: below the first, a change would be seen after seconds; the second is more than any
// cluster needs.
const leastCommands, mostCommands = 10, 10_000

func (a *app) runTopologyWatch(ctx context.Context, f *topologyWatchFlags, args []string) error {
	if err := cli.NotNegative("for", f.duration); err != nil {
		return err
	}
	perSecond, err := cli.ParseRateUpTo(f.most, mostCommands)
	if err == nil && perSecond < leastCommands {
		err = fmt.Errorf("at least %d/s are needed", leastCommands)
	}
	if err != nil {
		return cli.Usagef("--max-commands %q: %w", f.most, err)
	}
	targets, err := a.targets(ctx, args)
	if err != nil {
		return err
	}
	ctx, cancel := source.Window(ctx, f.duration)
	defer cancel()
	a.OnInterrupt("the summary follows")
	go a.awaitReaderGone(ctx, cancel)
	a.Progress("connecting to %s", targets[0].Addr())
	begun := false
	s, err := watch.Watch(ctx, watch.Options{
		Seeds: targets, Cluster: a.where.Cluster, PerSecond: perSecond, Publish: f.publish,
		Ready: func(r watch.Ready) {
			begun = true
			a.ProgressDone()
			a.Say(readyLine(r, f.most))
			a.Progress("watching; Ctrl-C ends it")
		},
		Event: func(e watch.Event) error {
			a.ProgressDone() // also where the same terminal is stdout
			defer a.Progress("watching; Ctrl-C ends it")
			return a.printEvent(e, f.asJSON)
		},
		Note: a.Say,
	})
	a.ProgressDone()
	if begun {
		a.Say(watchSummary(s, f.publish))
	}
	if errors.Is(err, watch.ErrNotCluster) {
		return cli.Usage(err)
	}
	return err
}

func (a *app) printEvent(e watch.Event, asJSON bool) error {
	var err error
	if asJSON {
		err = layout.JSONLine(a.Stdout, "a change", e)
	} else {
		err = a.Line(e.Time.Format("15:04:05.000") + "  " + layout.OneLine(e.String()))
	}
	if err != nil {
		return fmt.Errorf("writing the changes: %w", err)
	}
	return nil
}

func readyLine(r watch.Ready, most string) string {
	who := "each master"
	beat := r.PollEvery * time.Duration(max(r.Masters, 1))
	if r.Broadcast {
		who, beat = "one of the masters", r.PollEvery
		if r.Replica {
			who = "one of the replicas"
		}
	}
	return fmt.Sprintf("watching %s and %s: %s to %s every %v, at most %s in all; Ctrl-C ends it",
		format.Count(r.Masters, "master"), format.Count(r.Replicas, "replica"), r.Command, who,
		beat.Round(time.Millisecond), most)
}

func watchSummary(s watch.Summary, published bool) string {
	seconds := s.Took.Seconds()
	text := fmt.Sprintf("in %v: %s moved, %s, %s joined, %d left, %d became unreachable; %s to %s "+
		"(%.1f/s; at most %.1f/s to one node)",
		s.Took.Round(time.Second/10), format.Count(s.Slots, "slot"),
		format.Count(s.Kinds[watch.FailoverEnded], "failover"), format.Count(s.Kinds[watch.NodeJoined], "node"),
		s.Kinds[watch.NodeLeft], s.Kinds[watch.NodeUnreachable], format.Count(s.Commands, "command"),
		format.Count(s.Nodes, "node"), float64(s.Commands)/seconds, float64(s.Busiest)/seconds)
	if published {
		text += fmt.Sprintf("; %s published", format.Count(s.Published, "message"))
	}
	return text
}

// awaitReaderGone ends the watch when nobody reads it any more, though nothing may change for hours.
func (a *app) awaitReaderGone(ctx context.Context, end context.CancelFunc) {
	out, ok := a.Stdout.(*os.File)
	if !ok {
		return
	}
	if st, err := out.Stat(); err != nil || st.Mode()&os.ModeNamedPipe == 0 {
		return
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			fds := []unix.PollFd{{Fd: int32(out.Fd())}}
			if n, err := unix.Poll(fds, 0); err == nil && n > 0 && fds[0].Revents&unix.POLLERR != 0 {
				end()
				return
			}
		}
	}
}
