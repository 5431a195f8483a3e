//go:build linux

package benching

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"slowpath/internal/cli"
	"slowpath/internal/cli/named"
	"slowpath/internal/clock"
	"slowpath/internal/load/bench"
	"slowpath/internal/load/engine"
	"slowpath/internal/load/experiment"
	"slowpath/internal/load/results"
	"slowpath/internal/report/layout"
	"slowpath/internal/source"
	"slowpath/internal/wire/target"
)

// comparing is the same load on several targets in turn.
type comparing struct {
	app     *named.CommandLine
	flags   *Options
	clock   *clock.Real
	targets []*comparedTarget
}

// comparedTarget is one of them.
type comparedTarget struct {
	experimenting
	info experiment.ComparedTarget
	data *bench.Data
}

// compareTargets makes the loads of --compare-targets, and prints the table.
func compareTargets(ctx context.Context, a *named.CommandLine, f *Options, args []string) (err error) {
	kinds, addresses := splitKinds(args)
	targets, err := a.Targets(ctx, addresses)
	if err != nil {
		return err
	}
	switch n := len(targets); {
	case n < 2:
		return cli.Usagef("--compare-targets compares servers, and only %s is named: name 2 or more, the one to "+
			"compare with first", targets[0].Addr())
	case n > experiment.MostTargets:
		return cli.Usagef("--compare-targets: %d servers; name at most %d", n, experiment.MostTargets)
	}
	kinds = append(make([]string, len(targets)-len(kinds)), kinds...) // -s and -u are targets in front of the others
	c := &comparing{app: a, flags: f, clock: clock.New()}
	a.OnInterrupt("the table follows, the keys are removed")
	defer a.ProgressDone()
	for i, t := range targets {
		if err := c.open(ctx, t, kinds[i]); err != nil {
			a.ProgressDone()
			return errors.Join(err, c.leave(ctx))
		}
	}
	if a.Where.Cluster && !slices.ContainsFunc(c.targets, (*comparedTarget).isCluster) {
		return errors.Join(cli.Usagef("-c: none of the targets is a node of a cluster; leave it out"), c.leave(ctx))
	}
	page, err := cli.NewFile("html", f.Experiment.HTML) // a name that cannot be written ends it before the loads
	if err != nil {
		return errors.Join(err, c.leave(ctx))
	}
	return errors.Join(c.run(ctx, page), c.leave(ctx))
}

// splitKinds takes the kinds off arguments such as cluster:10.0.0.1:7001. A host may have such a name: cluster:7001 is
// its port 7001.
func splitKinds(args []string) (kinds, addresses []string) {
	for _, arg := range args {
		kind, rest, _ := strings.Cut(arg, ":")
		if !slices.Contains([]string{experiment.Standalone, experiment.Cluster, experiment.Proxy}, kind) ||
			strings.Trim(rest, "0123456789") == "" {
			kind, rest = "", arg
		}
		kinds, addresses = append(kinds, kind), append(addresses, rest)
	}
	return kinds, addresses
}

// open connects to a target, finds out what it is, and writes what is to be there before.
func (c *comparing) open(ctx context.Context, to target.Target, kind string) error {
	c.app.Progress("connecting to %s", to.Addr())
	t := &comparedTarget{}
	flags := *c.flags
	t.benching = &benching{app: c.app, flags: &flags}
	t.experiment = &flags.Experiment
	if err := t.use(c, to, false); err != nil {
		return err
	}
	g, err := t.greet(ctx)
	if err != nil {
		return err
	}
	said := kind != ""
	switch {
	case !said:
		kind = kindOfServer(g)
	case kind == experiment.Cluster && g.Identity.Server != "" && !g.Identity.ClusterEnabled:
		return cli.Usagef("cluster:%s is not in a cluster (cluster-enabled no): leave out cluster:", to.Addr())
	}
	if kind == experiment.Cluster {
		if to.Password != "" && !said && !c.app.Where.Cluster {
			return cli.Usagef("%s is in a cluster, whose nodes all get the password: add -c, or write cluster:%[1]s",
				layout.OneLine(to.Addr()))
		}
		if err := t.use(c, to, true); err != nil {
			return err
		}
	}
	g.Identity.ClusterEnabled = kind == experiment.Cluster
	if err := t.identify(ctx, g, kind); err != nil {
		return err
	}
	if t.data, err = t.openData(ctx, g); err != nil {
		return err
	}
	c.targets = append(c.targets, t)
	return nil
}

// use makes the options of the load on a target.
func (t *comparedTarget) use(c *comparing, to target.Target, clustered bool) (err error) {
	t.flags.Load.Cluster = clustered
	if t.options, err = t.flags.options(); err != nil {
		return err
	}
	t.options.Load.Target, t.options.Load.Clock, t.options.Version = to, c.clock, c.app.Version
	if err := t.options.Load.Check(); err != nil { // a target may be several servers
		return cli.Usage(err)
	}
	return nil
}

// identify says what the target is. What it says of itself may be that of a server behind a proxy: the first load shows
// whose process answers, where it is on this host.
func (t *comparedTarget) identify(ctx context.Context, g source.Greeting, kind string) error {
	t.options.Target = bench.Target{Address: t.options.Load.Target.Addr(), Kind: kind, Server: g.Identity.Server}
	t.info = experiment.ComparedTarget{
		Address: t.options.Target.Address, Kind: kind, Server: g.Identity.Server, Identity: g.Identity.RunID,
	}
	switch kind {
	case experiment.Standalone:
		t.info.Nodes = 1
	case experiment.Cluster:
		masters, err := engine.Masters(ctx, t.options.Load)
		if err != nil {
			return err
		}
		addresses := make([]string, len(masters))
		for i, m := range masters {
			addresses[i] = m.Addr()
		}
		slices.Sort(addresses)
		t.info.Nodes, t.info.Identity = len(masters), strings.Join(addresses, " ")
	}
	return nil
}

func (t *comparedTarget) isCluster() bool { return t.info.Kind == experiment.Cluster }

// run makes the loads and prints what they show; page is nil without --html.
func (c *comparing) run(ctx context.Context, page *os.File) error {
	f, first := &c.flags.Experiment, c.targets[0]
	loads, of := 0, (f.Repeat+1)*len(c.targets)
	compared, err := experiment.MakeTargets(ctx, experiment.TargetsOptions{
		Setup: first.setup(), Targets: len(c.targets), Rounds: f.Repeat, Open: first.options.Load.Open(),
		Load:   func(ctx context.Context, i int) (experiment.Run, error) { return c.targets[i].load(ctx) },
		Target: func(i int) experiment.ComparedTarget { return c.targets[i].info },
		Progress: func(round, i int) {
			name := fmt.Sprintf("round %d of %d", round, f.Repeat)
			if round == 0 {
				name = "a round that does not count"
			}
			left := time.Duration(of-loads) * (f.eachLasts + f.Warmup)
			c.app.Progress("%s, %s %s; %v left; Ctrl-C ends it", name, experiment.TargetName(i),
				c.targets[i].info.Address, left.Round(time.Second))
			loads++
		},
	})
	c.app.ProgressDone()
	if err != nil {
		if page != nil {
			page.Close()
			cli.RemoveFile(page.Name()) // it holds nothing
		}
		return err
	}
	failed := func(t experiment.Compared) bool { return len(t.Failures) > 0 }
	if slices.ContainsFunc(compared.Targets, failed) {
		c.app.Code = cli.ExitFindings
	}
	if c.flags.AsJSON {
		err = results.TargetsJSON(c.app.Stdout, compared)
	} else {
		err = results.Targets(c.app.Stdout, compared, c.app.Style())
	}
	return errors.Join(err, c.writePage(page, compared))
}

func (c *comparing) writePage(page *os.File, compared *experiment.Targets) error {
	if page == nil {
		return nil
	}
	if err := errors.Join(results.TargetsPage(page, compared), page.Close()); err != nil {
		return err
	}
	c.app.Say(fmt.Sprintf("page: %s", layout.OneLine(page.Name())))
	return nil
}

// load makes one load. One at whose end the target is gone says nothing of how fast it is.
func (t *comparedTarget) load(ctx context.Context) (experiment.Run, error) {
	r, err := t.measured(ctx, *t.flags, t.experiment.Warmup)
	if err != nil {
		return experiment.Run{}, err
	}
	for _, n := range r.Servers {
		if n.Proxy && !t.isCluster() {
			t.info.Kind, t.info.Process, t.info.Nodes = experiment.Proxy, n.Process, 0
		}
	}
	connected := len(r.Series) == 0 || r.Series[len(r.Series)-1].Connected > 0
	switch {
	case r.Connections.Lost > 0 && !connected:
		return experiment.Run{}, fmt.Errorf("its connections ended during the load: %s",
			strings.Join(slices.Sorted(maps.Keys(r.Errors)), ", "))
	case r.Requests == 0:
		return experiment.Run{}, errors.New("no call had a reply")
	}
	return runOf(r), nil
}

// leave removes the keys of the loads.
func (c *comparing) leave(ctx context.Context) error {
	var errs []error
	for _, t := range c.targets {
		errs = append(errs, t.benching.leave(ctx, t.data))
	}
	return errors.Join(errs...)
}
