package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/topology/survey"
	"slowpath/internal/topology/views"
	"slowpath/internal/wire/target"
)

func (a *app) topology() *cobra.Command {
	var f topologyFlags
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
		RunE: func(cmd *cobra.Command, args []string) error { return a.runTopology(cmd.Context(), &f, args) },
	}
	fl := c.Flags()
	fl.DurationVar(&f.window, "for", 10*time.Second, "how long to count refreshes; 0: only the map")
	cli.Group(fl, "Estimates", func() {
		fl.StringVar(&f.nodes, "nodes", "", "estimate for clusters of so many `nodes`, e.g. 80,300 (default)")
		fl.IntVar(&f.question.Clients, "clients", 0, "estimate with so many `clients` (default: as seen)")
		fl.DurationVar(&f.question.Period, "period", 0, "estimate with a refresh so often (default: as seen, else 1m)")
	})
	fl.BoolVar(&f.all, "all", false, "list every shard")
	fl.DurationVar(&f.timeout, "timeout", survey.DefaultTimeout, "for connecting to each node")
	fl.DurationVar(&f.callTimeout, "call-timeout", survey.DefaultTimeout, "for each reply of a node")
	fl.BoolVar(&f.asJSON, "json", false, "print "+survey.Schema)
	a.targetFlags(c)
	c.AddCommand(a.topologyWatch(), a.topologySimulate())
	return c
}

// topologyFlags are the flags of topology.
type topologyFlags struct {
	window, timeout, callTimeout time.Duration
	nodes                        string
	question                     survey.Assumptions
	all, asJSON                  bool
}

// mostClients is more than any cluster has connections.
const mostClients = 100_000_000

// maxWindow bounds a count, which keeps a listing per tick and node.
const maxWindow = time.Hour

func (f *topologyFlags) check() error {
	if f.window < 0 || f.window > maxWindow {
		return cli.Usagef("--for %v: must be 0 (only the map) to %v", f.window, maxWindow)
	}
	if err := cli.Positive("timeout", f.timeout); err != nil {
		return err
	}
	if err := cli.Positive("call-timeout", f.callTimeout); err != nil {
		return err
	}
	if f.question.Clients < 0 || f.question.Clients > mostClients {
		return cli.Usagef("--clients %d: give 0 (as seen) to %d", f.question.Clients, mostClients)
	}
	if f.question.Period < 0 {
		return cli.Usagef("--period %v: must not be negative", f.question.Period)
	}
	for text := range strings.SplitSeq(f.nodes, ",") {
		if text == "" && f.nodes == "" {
			break
		}
		const most = 10_000
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > most {
			return cli.Usagef("--nodes %q: give numbers of nodes from 1 to %d, such as 80,300", f.nodes, most)
		}
		f.question.Nodes = append(f.question.Nodes, n)
	}
	f.question.Version = version
	return nil
}

func (a *app) runTopology(ctx context.Context, f *topologyFlags, args []string) error {
	if err := f.check(); err != nil {
		return err
	}
	targets, err := a.targets(ctx, args)
	if err != nil {
		return err
	}
	if err := clusterTarget(targets); err != nil {
		return err
	}
	seen, err := a.survey(ctx, survey.Options{
		Target: targets[0], Cluster: a.where.Cluster, Window: f.window, Timeout: f.timeout, CallTimeout: f.callTimeout,
	})
	if err != nil {
		return err
	}
	r := survey.Analyse(seen, f.question)
	if r.Verdict == survey.Findings {
		a.Code = cli.ExitFindings
	}
	if f.asJSON {
		return views.TopologyJSON(a.Stdout, r)
	}
	return views.Topology(a.Stdout, r, f.all, a.Style())
}

// survey asks a cluster, and shows what it does meanwhile.
func (a *app) survey(ctx context.Context, o survey.Options) (*survey.Survey, error) {
	a.OnInterrupt("what was seen so far follows")
	o.Progress = func(s string) { a.Progress("%s", s) }
	seen, err := o.Run(ctx)
	a.ProgressDone()
	if errors.Is(err, survey.ErrNotCluster) {
		return nil, cli.Usage(err)
	}
	return seen, err
}

func clusterTarget(targets []target.Target) error {
	switch t := targets[0]; {
	case len(targets) > 1:
		return cli.Usagef("topology takes one node of a cluster, not %d targets: it finds the others itself",
			len(targets))
	case t.Sentinel != "":
		return cli.Usage(fmt.Errorf("%w: %s is watched by sentinels; for a single server: slowpath doctor",
			survey.ErrNotCluster, t.Sentinel))
	}
	return nil
}
