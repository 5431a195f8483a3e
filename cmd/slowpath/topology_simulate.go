package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"slowpath/internal/cli"
	"slowpath/internal/topology/cost"
	"slowpath/internal/topology/simulate"
	"slowpath/internal/topology/survey"
	"slowpath/internal/topology/views"
)

func (a *app) topologySimulate() *cobra.Command {
	f := simulateFlags{}
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
			f.given = cmd.Flags().Changed
			return a.runSimulate(cmd.Context(), &f, args)
		},
	}
	f.add(c)
	a.targetFlags(c)
	return c
}

// simulateFlags are the flags of topology simulate.
type simulateFlags struct {
	setup    simulate.Setup
	kind     string
	calls    string
	slots    string
	ranges   int
	policies []string
	asJSON   bool
	given    func(string) bool
}

// changeAt is when the change begins: before it the policies only cost.
const changeAt = 10 * time.Second

func (f *simulateFlags) add(c *cobra.Command) {
	fl, s := c.Flags(), &f.setup
	s.Change.At = changeAt
	fl.StringVar(&f.kind, "change", string(simulate.Slots), "what happens: `CHANGE` slots, failover, hang, "+
		"rejoin, none")
	fl.StringArrayVar(&f.policies, "policy", nil, "a `policy`, such as lettuce-7,guard=30s (default: all)")
	fl.IntVar(&s.Clients, "clients", 4000, "clients, each with its own map")
	fl.StringVar(&f.calls, "calls", "10/s", "calls of each client")
	fl.IntVar(&s.InUse, "slots-in-use", 16384, "slots that calls go to")
	fl.DurationVar(&s.Duration, "for", 2*time.Minute, "simulated time; the change begins after 10s")
	fl.IntVar(&s.Change.Slots, "slots", 500, "slots: how many move")
	fl.StringVar(&f.slots, "slots-per-second", "50/s", "slots: how `many` at once")
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
	fl.IntVar(&f.ranges, "ranges", 6, "ranges of slots of each master (TARGET: its own)")
	fl.DurationVar(&s.Spread, "spread", 0, "mean time until a node hears of a moved slot (default: by version)")
	fl.DurationVar(&s.RTT, "rtt", 500*time.Microsecond, "round trip between clients and servers")
	fl.Uint64Var(&s.Seed, "seed", 1, "of the random numbers")
	fl.BoolVar(&f.asJSON, "json", false, "print "+simulate.Schema)
}

// prepare makes the setup of the flags, but for the cluster. All its errors are the user's.
func (f *simulateFlags) prepare() (policies []simulate.Policy, err error) {
	s := &f.setup
	s.Change.Kind = simulate.ChangeKind(f.kind)
	if s.Calls, err = cli.ParseRate(f.calls); err != nil {
		return nil, fmt.Errorf("--calls %q: %w", f.calls, err)
	}
	if s.Change.PerSecond, err = cli.ParseRate(f.slots); err != nil {
		return nil, fmt.Errorf("--slots-per-second %q: %w", f.slots, err)
	}
	if len(f.policies) == 0 {
		f.policies = simulate.Presets()
	}
	const most = 20
	if len(f.policies) > most {
		return nil, fmt.Errorf("--policy: %d of them; give at most %d", len(f.policies), most)
	}
	for _, text := range f.policies {
		p, err := simulate.ParsePolicy(text)
		if err != nil {
			return nil, fmt.Errorf("--policy %s: %w", text, err)
		}
		policies = append(policies, p)
	}
	const mostRanges = 16384
	if f.ranges < 1 || f.ranges*max(1, s.Masters) > mostRanges {
		return nil, fmt.Errorf("--ranges %d: give 1 or more, and at most %d of all masters", f.ranges, mostRanges)
	}
	return policies, s.Check()
}

func (a *app) runSimulate(ctx context.Context, f *simulateFlags, args []string) error {
	policies, err := f.prepare()
	if err != nil {
		return cli.Usage(err)
	}
	r := &simulate.Report{Schema: simulate.Schema, Version: version, Costs: simulate.Reference}
	if o := a.where; len(args) > 0 || o.Host != "" || o.Port != 0 || o.Socket != "" || o.URI != "" {
		err = a.setupOfTarget(ctx, f, r, args)
	} else {
		err = f.setupOfFlags()
	}
	if err != nil {
		return err
	}
	r.Setup = f.setup
	a.InterruptEnds("nothing was simulated")
	r.Results, err = simulate.Compare(ctx, f.setup, policies, func(s string) { a.Progress("%s", s) })
	a.ProgressDone()
	if errors.Is(err, simulate.ErrSetup) {
		return cli.Usage(err)
	}
	if err != nil {
		return err
	}
	if f.asJSON {
		return views.SimulationJSON(a.Stdout, r)
	}
	return views.Simulation(a.Stdout, r, a.Style())
}

// setupOfFlags takes the size of the flags and the costs of the reference.
func (f *simulateFlags) setupOfFlags() error {
	s := &f.setup
	s.Size = simulate.SizeOf(s.Masters, s.Replicas, f.ranges)
	costs, err := simulate.CostsOf(s.Server, s.Size)
	if err != nil {
		return cli.Usagef("--server %w", err)
	}
	s.Costs = costs
	f.spread()
	return nil
}

func (f *simulateFlags) spread() {
	if !f.given("spread") {
		f.setup.Spread = simulate.SpreadOf(f.setup.Server)
	}
}

// setupOfTarget takes the size, the version and the costs of a cluster.
func (a *app) setupOfTarget(ctx context.Context, f *simulateFlags, r *simulate.Report, args []string) error {
	for _, name := range []string{"server", "masters", "replicas", "ranges"} {
		if f.given(name) {
			return cli.Usagef("--%s is measured on the target; leave it out, or leave out the target", name)
		}
	}
	seen, err := a.surveyMap(ctx, args)
	if err != nil {
		return err
	}
	m := survey.Analyse(seen, survey.Assumptions{Version: version})
	if m.Model == nil {
		return cli.Usagef("what CLUSTER NODES and SLOTS cost on %s could not be measured; simulate without a target: "+
			"--server, --masters", m.Target.Address)
	}
	s := &f.setup
	s.Server, s.Size, s.Masters = m.Target.Server, m.Map.Size, m.Map.Size.Masters
	s.Replicas = m.Map.Replicas / max(1, s.Masters)
	s.Costs = map[cost.Command]time.Duration{}
	for _, c := range cost.Commands {
		if d, ok := m.Model.Of(c, s.Size); ok {
			s.Costs[c] = d
		}
	}
	for _, x := range seen.Nodes[0].Measured {
		s.Costs[x.Command] = x.PerCall
	}
	f.spread()
	r.Target, r.Costs = m.Target.Address, simulate.Measured
	if err := s.Check(); err != nil {
		return cli.Usage(err)
	}
	return nil
}

// surveyMap reads the map of a cluster and measures what reading it costs.
func (a *app) surveyMap(ctx context.Context, args []string) (*survey.Survey, error) {
	targets, err := a.targets(ctx, args)
	if err != nil {
		return nil, err
	}
	if err := clusterTarget(targets); err != nil {
		return nil, err
	}
	return a.survey(ctx, survey.Options{
		Target: targets[0], Cluster: a.where.Cluster, Timeout: survey.DefaultTimeout,
		CallTimeout: survey.DefaultTimeout,
	})
}
