package main

import (
	"time"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/mapping"
	"slowpath/internal/topology/survey"
)

func (a *app) topology() *cobra.Command {
	var f mapping.Survey
	c := &cobra.Command{
		Use:   "topology [TARGET]",
		Short: "The map of a cluster, who refreshes it, and what that costs",
		Long: `topology asks all nodes of a cluster for their view of it, and shows the map, where the views differ,
slots that nobody has or that are on their way, the health of replicas and links. Then it counts for a while who
refreshes the topology and what that costs the servers, measures what one refresh costs, estimates it for other
sizes and versions, and says what each option would save.

It only reads: INFO, CLUSTER NODES, INFO and LINKS, CLIENT LIST and SLOWLOG of each node, and some calls of CLUSTER
NODES and SLOTS to the target to measure them. MONITOR is never sent. The number of commands does not depend on the
load, and is said at the end.

Exit codes: 0 nothing is wrong, 1 findings, 2 usage or not a cluster, 3 cannot connect or log in, 70 anything else.`,
		Example: `  slowpath topology 10.0.0.5:6379
  slowpath topology 10.0.0.5:6379 --for 70s       # see who asks once a minute
  slowpath topology 10.0.0.5:6379 --nodes 80,300 --clients 4000 --period 60s
  slowpath topology 10.0.0.5:6379 --for 0 --all   # the map, every shard
  slowpath topology 10.0.0.5:6379 --json`,
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
	fl.DurationVar(&f.Window, "for", 10*time.Second, "how long to count refreshes; 0: only the map")
	cli.Group(fl, "Estimates", func() {
		fl.StringVar(&f.Nodes, "nodes", "", "estimate for clusters of so many `nodes`, e.g. 80,300 (default)")
		fl.IntVar(&f.Question.Clients, "clients", 0, "estimate with so many `clients` (default: as seen)")
		fl.DurationVar(&f.Question.Period, "period", 0, "estimate with a refresh so often (default: as seen, else 1m)")
	})
	fl.BoolVar(&f.All, "all", false, "list every shard")
	fl.DurationVar(&f.Timeout, "timeout", survey.DefaultTimeout, "for connecting to each node")
	fl.DurationVar(&f.CallTimeout, "call-timeout", survey.DefaultTimeout, "for each reply of a node")
	fl.BoolVar(&f.AsJSON, "json", false, "print "+survey.Schema)
	a.targetFlags(c)
	c.AddCommand(a.topologyWatch(), a.topologySimulate())
	return c
}
