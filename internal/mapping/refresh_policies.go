package mapping

import (
	"context"
	"errors"
	"fmt"
	"time"

	"slowpath/internal/cli"
	"slowpath/internal/topology/cost"
	"slowpath/internal/topology/simulate"
	"slowpath/internal/topology/survey"
	"slowpath/internal/topology/views"
	"slowpath/internal/wire/target"
)

// Simulation are the flags of topology simulate.
type Simulation struct {
	Setup        simulate.Setup
	Change       string
	Calls, Slots string // rates
	Ranges       int    // of each master
	Policies     []string
	AsJSON       bool

	policies []simulate.Policy
	spread   bool // is given
}

// Check makes the setup of the flags, but for the cluster. changed tells whether a flag was given, measured that the
// cluster is a real one.
func (f *Simulation) Check(changed func(flag string) bool, measured bool) error {
	if err := f.prepare(); err != nil {
		return cli.Usage(err)
	}
	f.spread = changed("spread")
	for _, name := range []string{"server", "masters", "replicas", "ranges"} {
		if measured && changed(name) {
			return cli.Usagef("--%s is measured on the target; leave it out, or leave out the target", name)
		}
	}
	return nil
}

// prepare reads what is text. All its errors are the user's.
func (f *Simulation) prepare() (err error) {
	s := &f.Setup
	s.Change.Kind = simulate.ChangeKind(f.Change)
	if s.Calls, err = cli.ParseRate(f.Calls); err != nil {
		return fmt.Errorf("--calls %q: %w", f.Calls, err)
	}
	if s.Change.PerSecond, err = cli.ParseRate(f.Slots); err != nil {
		return fmt.Errorf("--slots-per-second %q: %w", f.Slots, err)
	}
	if len(f.Policies) == 0 {
		f.Policies = simulate.Presets()
	}
	const most = 20
	if len(f.Policies) > most {
		return fmt.Errorf("--policy: %d of them; give at most %d", len(f.Policies), most)
	}
	for _, text := range f.Policies {
		p, err := simulate.ParsePolicy(text)
		if err != nil {
			return fmt.Errorf("--policy %s: %w", text, err)
		}
		f.policies = append(f.policies, p)
	}
	const mostRanges = 16384
	if f.Ranges < 1 || f.Ranges*max(1, s.Masters) > mostRanges {
		return fmt.Errorf("--ranges %d: give 1 or more, and at most %d of all masters", f.Ranges, mostRanges)
	}
	return s.Check()
}

// Run simulates on the cluster of a target, or where there is none on that of the flags, and shows what comes out.
// With cluster the password may be sent to all nodes.
func (f *Simulation) Run(ctx context.Context, a *cli.Program, targets []target.Target, cluster bool) (err error) {
	r := &simulate.Report{Schema: simulate.Schema, Version: a.Version}
	if len(targets) > 0 {
		err = f.measure(ctx, a, r, targets, cluster)
	} else {
		err = f.refer(r)
	}
	if err != nil {
		return err
	}
	a.InterruptEnds("nothing was simulated")
	r.Setup = f.Setup
	r.Results, err = simulate.Compare(ctx, f.Setup, f.policies, func(s string) { a.Progress("%s", s) })
	a.ProgressDone()
	if errors.Is(err, simulate.ErrSetup) {
		return cli.Usage(err)
	}
	if err != nil {
		return err
	}
	if f.AsJSON {
		return views.SimulationJSON(a.Stdout, r)
	}
	return views.Simulation(a.Stdout, r, a.Style())
}

// refer takes the size of the flags and the costs of the reference.
func (f *Simulation) refer(r *simulate.Report) (err error) {
	s := &f.Setup
	s.Size = simulate.SizeOf(s.Masters, s.Replicas, f.Ranges)
	if s.Costs, err = simulate.CostsOf(s.Server, s.Size); err != nil {
		return cli.Usagef("--server %w", err)
	}
	r.Costs = simulate.Reference
	f.spreadByVersion()
	return nil
}

func (f *Simulation) spreadByVersion() {
	if !f.spread {
		f.Setup.Spread = simulate.SpreadOf(f.Setup.Server)
	}
}

// measure takes the size, the version and the costs of the cluster of a target.
func (f *Simulation) measure(ctx context.Context, a *cli.Program, r *simulate.Report, targets []target.Target,
	cluster bool,
) error {
	seen, err := surveyed(ctx, a, survey.Options{}, targets, cluster)
	if err != nil {
		return err
	}
	m := survey.Analyse(seen, survey.Assumptions{Version: a.Version})
	if m.Model == nil {
		return cli.Usagef("what CLUSTER NODES and SLOTS cost on %s could not be measured; simulate without a target: "+
			"--server, --masters", m.Target.Address)
	}
	s := &f.Setup
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
	f.spreadByVersion()
	r.Target, r.Costs = m.Target.Address, simulate.Measured
	if err := s.Check(); err != nil {
		return cli.Usage(err)
	}
	return nil
}
