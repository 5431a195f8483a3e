package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"slowpath/internal/mapping"
	"slowpath/internal/topology/simulate"
	"slowpath/internal/wire/target"
)

func (a *app) topologySimulate() *cobra.Command {
	var f mapping.Simulation
	c := &cobra.Command{
		Use:   "simulate [TARGET]",
		Short: "What refresh policies cost, and how old maps of clients get",
		Long: `simulate predicts what policies by which clients refresh the map lead to when the cluster changes: how
long clients have an old map, MOVED per second, CLUSTER commands per second, and CPU of the servers. It is a
simulation of each refresh and of each call to a slot that changes; with the same --seed the result is the same.

Without a TARGET it opens no connection: the cluster is that of the flags, and the costs are those of a server
version on the machine of the reference. With a TARGET the size, the version and the time of one CLUSTER command are
measured there, as topology --for 0 does.

With --change slots, slots move one by one: a map that is fetched meanwhile is old again. With failover, a master's
process ends, and its replica takes over. With hang, a master stops and closes no connection: it sends no MOVED. With
rejoin, a master ends as with failover, comes back as a replica, and answers LOADING. With none, the policies only
cost.

--policy is repeatable: ` + strings.Join(simulate.Presets(), ", ") + `. Settings may follow its name, as in
lettuce-7,guard=30s,ask=replicas.

When to refresh: period=60s; on=moved+ask+reconnect+uncovered+unknown (or all, none); every=5, only each fifth MOVED;
guard=30s between two triggers; deferred=true, a trigger in that time is made up for; push=30ms, changes are published;
patch=true, MOVED corrects its slot.

Whom to ask: ask=one, redirector, seeds, masters, replicas or all; choose=first, known (most nodes that the client
knows), reachable (most nodes that are not marked as failed) or epoch (the newest) of several answers;
command=nodes, slots or shards; timeout=10s of a silent node.

How to connect again: attempts=3 until reconnect triggers; pause=2ms before the first, doubled up to pause-most=30s;
call-timeout=4s, after which a call closes its connection.

Exit codes: 0 simulated, 2 usage or not a cluster, 3 cannot connect or log in, 70 anything else.`,
		Example: `  slowpath topology simulate      # 500 slots move, 40 masters, 4000 clients
  slowpath topology simulate --change hang --server 'redis 7.0.15'
  slowpath topology simulate --change rejoin --policy lettuce-7,guard=30s
  slowpath topology simulate --policy jedis --policy lettuce-7,ask=replicas
  slowpath topology simulate 10.0.0.5:6379 --clients 500 --calls 20/s --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			named := !a.Unnamed(args)
			if err := f.Check(cmd.Flags().Changed, named); err != nil {
				return err
			}
			var targets []target.Target
			if named {
				var err error
				if targets, err = a.Targets(cmd.Context(), args); err != nil {
					return err
				}
			}
			return f.Run(cmd.Context(), a.Program, targets, a.Where.Cluster)
		},
	}
	addSimulationFlags(c.Flags(), &f)
	a.targetFlags(c)
	return c
}

// changeAt is when the change begins: before it the policies only cost.
const changeAt = 10 * time.Second

func addSimulationFlags(fl *pflag.FlagSet, f *mapping.Simulation) {
	s := &f.Setup
	s.Change.At = changeAt
	fl.StringVar(&f.Change, "change", string(simulate.Slots), "what happens: `CHANGE` slots, failover, hang, "+
		"rejoin, none")
	fl.StringArrayVar(&f.Policies, "policy", nil, "a `policy`, such as lettuce-7,guard=30s (default: all)")
	fl.IntVar(&s.Clients, "clients", 4000, "clients, each with its own map")
	fl.StringVar(&f.Calls, "calls", "10/s", "calls of each client")
	fl.IntVar(&s.InUse, "slots-in-use", 16384, "slots that calls go to")
	fl.DurationVar(&s.Duration, "for", 2*time.Minute, "simulated time; the change begins after 10s")
	fl.IntVar(&s.Change.Slots, "slots", 500, "slots: how many move")
	fl.StringVar(&f.Slots, "slots-per-second", "50/s", "slots: how `many` at once")
	fl.DurationVar(&s.Change.Open, "open", 20*time.Millisecond, "slots: how long each is open, with ASK")
	fl.DurationVar(&s.Change.Gap, "gap", 0, "slots: how long each belongs to no node")
	fl.BoolVar(&s.Change.NewNode, "new-node", false, "slots: they move to a node that has just joined")
	fl.DurationVar(&s.Change.Promotion, "promotion", 16*time.Second, "failure: after which the replica takes over "+
		"(cluster-node-timeout and a second)")
	fl.DurationVar(&s.Change.Back, "back", 40*time.Second, "rejoin: after which the old master is back")
	fl.DurationVar(&s.Change.Loading, "loading", 10*time.Second, "rejoin: how long it answers LOADING")
	fl.StringVar(&s.Server, "server", "redis 6.0.16", "product and `version` of the servers (TARGET: its own)")
	fl.IntVar(&s.Masters, "masters", 40, "masters (TARGET: its own)")
	fl.IntVar(&s.Replicas, "replicas", 1, "replicas of each master (TARGET: its own)")
	fl.IntVar(&f.Ranges, "ranges", 6, "ranges of slots of each master (TARGET: its own)")
	fl.DurationVar(&s.Spread, "spread", 0, "mean time until a node hears of a moved slot (default: by version)")
	fl.DurationVar(&s.RTT, "rtt", 500*time.Microsecond, "round trip between clients and servers")
	fl.Uint64Var(&s.Seed, "seed", 1, "of the random numbers")
	fl.BoolVar(&f.AsJSON, "json", false, "print "+simulate.Schema)
}
