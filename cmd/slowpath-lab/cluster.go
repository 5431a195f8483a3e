//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/format"
	"slowpath/internal/lab/clusters"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/scenario"
	"slowpath/internal/wire/cluster"
)

func (a *app) cluster() *cobra.Command {
	c := &cobra.Command{
		Use:   "cluster",
		Short: "Change a cluster of lab up while it serves calls",
		Long: `cluster adds and removes nodes of a cluster that lab up has started, moves slots, and has replicas take
over. NODE is an address, a port, or the first 6 or more characters of a node's id.

slowpath topology watch tells each of these changes, and slowpath bench -c shows what calls notice of them: redirects
(MOVED, ASK), errors, and the latency of the seconds in which they happen.

Ctrl-C ends a move of slots after the slot that is being moved, and says how to go on. After a kill -9 that slot is
left on its way; the next command that moves slots ends that move first.`,
		Example: `  slowpath lab up --masters 3 --replicas 1
  slowpath lab cluster add-node --slots 1000
  slowpath lab cluster reshard --from 7001 --to 7002 --slots 500
  slowpath lab cluster failover 7001 --kill
  slowpath lab cluster del-node 7001`,
		Args: cli.Subcommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.addNode(), a.delNode(), a.reshard(), a.failover())
	return c
}

// changing is a cluster of the lab that is being changed.
type changing struct {
	app  *app
	name string
	pace clusters.Pace
	lab  *scenario.Lab
	*clusters.Cluster
}

func (a *app) changing(c *cobra.Command) *changing {
	ch := &changing{app: a}
	c.Flags().StringVar(&ch.name, "name", fleet.DefaultName, "`name` of the cluster, as given to lab up")
	return ch
}

// paced adds the flags of commands that move slots.
func (ch *changing) paced(c *cobra.Command) {
	c.Flags().IntVar(&ch.pace.KeysAtOnce, "keys-at-once", 10, "`keys` of one MIGRATE, during which both nodes do "+
		"nothing else")
	c.Flags().DurationVar(&ch.pace.Pause, "pause", 0, "pause after each MIGRATE: spreads the move over a longer time")
}

// change opens the cluster and changes it.
func (ch *changing) change(ctx context.Context, do func(context.Context) error) (err error) {
	if err := fleet.CheckName(ch.name); err != nil {
		return cli.Usagef("--name %w", err)
	}
	if ch.pace.KeysAtOnce < 0 || ch.pace.Pause < 0 {
		return cli.Usagef("--keys-at-once and --pause cannot be negative")
	}
	ctx = ch.app.steps(ctx, "after the step that is under way")
	if ch.lab, err = ch.app.openLab(ctx, defaultServer, ch.app.Stderr); err != nil {
		return err
	}
	if ch.Cluster, err = clusters.Open(ctx, ch.lab.Fleet, ch.name); err == nil {
		defer ch.Close()
		ch.Note = ch.note
		ch.pace.Progress = ch.progress
		err = do(ctx)
	}
	ch.app.ProgressDone()
	var misuse clusters.Misuse
	switch {
	case errors.As(err, &misuse):
		return cli.Usage(err)
	case errors.Is(err, clusters.ErrStopped):
		ch.app.Explain(err)
		ch.app.Code = cli.ExitInterrupted
		return nil
	}
	return badPort(err)
}

func (ch *changing) note(text string) {
	ch.app.ProgressDone()
	fmt.Fprintln(ch.app.Stderr, text)
}

// progress shows how far the move of slots is.
func (ch *changing) progress(m clusters.Moved) {
	ch.app.Progress("%s, %s moved; Ctrl-C ends it after this slot", m, format.Count(m.Keys, "key"))
}

// moved prints what has been moved, and of a move that was stopped the command that goes on.
func (ch *changing) moved(m clusters.Moved, way, rest string) {
	fmt.Fprintf(ch.app.Stdout, "moved %s with %s %s in %s\n", m, format.Count(m.Keys, "key"), way,
		format.Duration(int64(m.Took)))
	if m.Stopped {
		ch.app.Code = cli.ExitInterrupted
		ch.app.Say(fmt.Sprintf("stopped: the cluster serves all slots; for the rest: slowpath lab cluster %s",
			rest))
	}
}

func (a *app) addNode() *cobra.Command {
	var add clusters.Addition
	c := &cobra.Command{
		Use:   "add-node",
		Short: "Start a server that joins the cluster",
		Long: `add-node starts a server of the same version and with the same options as the others, and has it join:
as a master, to which --slots moves slots of the masters that have the most, or as a replica of a master. If it cannot
join it is removed again.`,
		Example: `  slowpath lab cluster add-node --slots 4096
  slowpath lab cluster add-node --name blue --replica-of 7001`,
		Args: cli.NoArguments,
	}
	ch := a.changing(c)
	ch.paced(c)
	c.Flags().StringVar(&add.ReplicaOf, "replica-of", "", "`node` whose replica it becomes (default: it is a master)")
	c.Flags().IntVar(&add.Slots, "slots", 0, "`slots` that the new master gets of the others")
	c.Flags().IntVar(&add.Port, "port", 0, "its `port` (default: a free one)")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if add.ReplicaOf != "" && add.Slots != 0 {
			return cli.Usagef("--replica-of with --slots: a replica has no slots of its own; leave out one of them")
		}
		return ch.change(cmd.Context(), func(ctx context.Context) error { return ch.addNode(ctx, add) })
	}
	return c
}

func (ch *changing) addNode(ctx context.Context, add clusters.Addition) error {
	bin, err := ch.app.binaryOf(ctx, ch.lab, ch.Like().FoundBy())
	if err != nil {
		return err
	}
	add.Pace = ch.pace
	done, err := ch.Add(ctx, bin, add)
	if done.Joined {
		role := "a master without slots"
		switch {
		case done.Master != "":
			role = "a replica of " + done.Master
		case add.Slots > 0:
			role = "a master"
		}
		fmt.Fprintf(ch.app.Stdout, "%s joined as %s\n", done.Node.Addr, role)
	}
	if err == nil && add.Slots > 0 {
		// which masters have the most was decided at the start: the rest is what one of them gives
		ch.moved(done.Moved, "to it", fmt.Sprintf("reshard --name %s --to %s --from NODE --slots %d", ch.name,
			done.Node.Addr, done.Moved.Of-done.Moved.Slots))
	}
	return err
}

func (a *app) delNode() *cobra.Command {
	c := &cobra.Command{
		Use:   "del-node NODE",
		Short: "Move a node's slots away, remove it from the cluster, and stop it",
		Long: `del-node moves the slots of a master to the other masters, to those with the fewest, gives its replicas
another master, has all nodes forget it (CLUSTER FORGET), and stops it. A node whose process has ended is removed, too,
once a replica has taken over from it.`,
		Example: "  slowpath lab cluster del-node 127.0.0.1:7001",
		Args:    cli.OneArgument("NODE"),
	}
	ch := a.changing(c)
	ch.paced(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return ch.change(cmd.Context(), func(ctx context.Context) error {
			done, err := ch.Remove(ctx, args[0], ch.pace)
			if err != nil {
				return err
			}
			if done.Moved.Of > 0 {
				ch.moved(done.Moved, "away from "+done.Addr, fmt.Sprintf("del-node --name %s %s", ch.name, done.Addr))
			}
			if !done.Moved.Stopped {
				fmt.Fprintf(a.Stdout, "%s has left the cluster, and was stopped\n", done.Addr)
			}
			return nil
		})
	}
	return c
}

func (a *app) reshard() *cobra.Command {
	var from, to string
	var slots int
	c := &cobra.Command{
		Use:   "reshard",
		Short: "Move slots from one master to another one",
		Long: `reshard moves slots one after the other, the lowest first, and the keys of each in steps of
--keys-at-once. Callers of keys that have moved already are sent on with ASK, and with MOVED once the slot has its new
owner.`,
		Example: `  slowpath lab cluster reshard --from 7001 --to 7002 --slots 500
  slowpath lab cluster reshard --from 7001 --to 7002 --slots 10 --keys-at-once 1 --pause 10ms`,
		Args: cli.NoArguments,
	}
	ch := a.changing(c)
	ch.paced(c)
	c.Flags().StringVar(&from, "from", "", "`node` that has the slots")
	c.Flags().StringVar(&to, "to", "", "`node` that gets them")
	c.Flags().IntVar(&slots, "slots", 0, "number of `slots`")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if from == "" || to == "" || slots < 1 {
			return cli.Usagef("reshard needs --from NODE, --to NODE and --slots N, at least 1")
		}
		return ch.change(cmd.Context(), func(ctx context.Context) error {
			done, err := ch.Reshard(ctx, from, to, slots, ch.pace)
			if err != nil {
				return err
			}
			ch.moved(done, fmt.Sprintf("from %s to %s", from, to), fmt.Sprintf(
				"reshard --name %s --from %s --to %s --slots %d", ch.name, from, to, done.Of-done.Slots))
			return nil
		})
	}
	return c
}

func (a *app) failover() *cobra.Command {
	var force, kill bool
	c := &cobra.Command{
		Use:   "failover NODE",
		Short: "Have a replica take over from its master",
		Long: `failover has a replica take over: the NODE, or of a master the replica with the most data. Without an
option the master agrees, and no write is lost (CLUSTER FAILOVER). --force does it without the master, which may be
dead; the other masters vote. --kill kills the master's process, which the others notice after cluster-node-timeout
(15 s, unless lab up was given --config 'cluster-node-timeout 3000'); del-node removes what is left of it.`,
		Example: `  slowpath lab cluster failover 7004
  slowpath lab cluster failover 7001 --kill`,
		Args: cli.OneArgument("NODE"),
	}
	ch := a.changing(c)
	c.Flags().BoolVar(&force, "force", false, "without the master's agreement (CLUSTER FAILOVER FORCE)")
	c.Flags().BoolVar(&kill, "kill", false, "kill the master's process")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		how := clusters.Agreed
		switch {
		case force && kill:
			return cli.Usagef("--force and --kill: give one of them")
		case force:
			how = clusters.Forced
		case kill:
			how = clusters.Killed
		}
		return ch.change(cmd.Context(), func(ctx context.Context) error {
			done, err := ch.Failover(ctx, args[0], how)
			if err != nil {
				return err
			}
			fmt.Fprintf(a.Stdout, "%s took over the slots %s from %s in %s\n", done.To,
				cluster.FormatRanges(done.Slots), done.From, format.Duration(int64(done.Took)))
			if kill {
				a.Say(fmt.Sprintf("%s is dead; remove it: slowpath lab cluster del-node --name %s %[1]s",
					done.From, ch.name))
			}
			return nil
		})
	}
	return c
}
