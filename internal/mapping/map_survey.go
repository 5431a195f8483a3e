// Package mapping is what a command line asks of a cluster's map: a survey of it, its changes as they are seen, and
// simulations of how clients refresh it.
package mapping

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"slowpath/internal/cli"
	"slowpath/internal/topology/survey"
	"slowpath/internal/topology/views"
	"slowpath/internal/wire/target"
)

// Survey are the flags of topology.
type Survey struct {
	survey.Options
	Nodes       string // to estimate for
	Question    survey.Assumptions
	All, AsJSON bool
}

// mostClients is more than any cluster has connections.
const mostClients = 100_000_000

// maxWindow bounds a count, which keeps a listing per tick and node.
const maxWindow = time.Hour

// Check reads what flags say.
func (f *Survey) Check() error {
	if f.Window < 0 || f.Window > maxWindow {
		return cli.Usagef("--for %v: must be 0 (only the map) to %v", f.Window, maxWindow)
	}
	if err := cli.Positive("timeout", f.Timeout); err != nil {
		return err
	}
	if err := cli.Positive("call-timeout", f.CallTimeout); err != nil {
		return err
	}
	if f.Question.Clients < 0 || f.Question.Clients > mostClients {
		return cli.Usagef("--clients %d: give 0 (as seen) to %d", f.Question.Clients, mostClients)
	}
	if f.Question.Period < 0 {
		return cli.Usagef("--period %v: must not be negative", f.Question.Period)
	}
	for text := range strings.SplitSeq(f.Nodes, ",") {
		if text == "" && f.Nodes == "" {
			break
		}
		const most = 10_000
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 || n > most {
			return cli.Usagef("--nodes %q: give numbers of nodes from 1 to %d, such as 80,300", f.Nodes, most)
		}
		f.Question.Nodes = append(f.Question.Nodes, n)
	}
	return nil
}

// Run surveys the cluster of a target and shows it. With cluster the password may be sent to all of its nodes.
func (f *Survey) Run(ctx context.Context, a *cli.Program, targets []target.Target, cluster bool) error {
	seen, err := surveyed(ctx, a, f.Options, targets, cluster)
	if err != nil {
		return err
	}
	f.Question.Version = a.Version
	r := survey.Analyse(seen, f.Question)
	if r.Verdict == survey.Findings {
		a.Code = cli.ExitFindings
	}
	if f.AsJSON {
		return views.TopologyJSON(a.Stdout, r)
	}
	return views.Topology(a.Stdout, r, f.All, a.Style())
}

// surveyed asks the cluster of a target, and shows what it does meanwhile.
func surveyed(ctx context.Context, a *cli.Program, o survey.Options, targets []target.Target, cluster bool,
) (*survey.Survey, error) {
	switch t := targets[0]; {
	case len(targets) > 1:
		return nil, cli.Usagef("topology takes one node of a cluster, not %d targets: it finds the others itself",
			len(targets))
	case t.Sentinel != "":
		return nil, cli.Usage(fmt.Errorf("%w: %s is watched by sentinels; for a single server: slowpath doctor",
			survey.ErrNotCluster, t.Sentinel))
	}
	a.OnInterrupt("what was seen so far follows")
	o.Target, o.Cluster, o.Progress = targets[0], cluster, func(s string) { a.Progress("%s", s) }
	seen, err := o.Run(ctx)
	a.ProgressDone()
	if errors.Is(err, survey.ErrNotCluster) {
		return nil, cli.Usage(err)
	}
	return seen, err
}
