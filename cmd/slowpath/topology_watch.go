package main

import (
	"github.com/spf13/cobra"

	"slowpath/internal/mapping"
)

func (a *app) topologyWatch() *cobra.Command {
	var f mapping.Changes
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
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.Check(); err != nil {
				return err
			}
			targets, err := a.Targets(cmd.Context(), args)
			if err != nil {
				return err
			}
			return f.Run(cmd.Context(), a.Program, targets, a.Where.Cluster)
		},
	}
	fl := c.Flags()
	fl.DurationVar(&f.Duration, "for", 0, "how long to watch; 0: until Ctrl-C (default)")
	fl.StringVar(&f.Most, "max-commands", "100/s", "`commands` to the whole cluster, never more")
	fl.BoolVar(&f.Publish, "publish", false, "publish the changes on channels of the cluster, too")
	fl.BoolVar(&f.AsJSON, "json", false, "print a JSON object per line")
	a.targetFlags(c)
	return c
}
