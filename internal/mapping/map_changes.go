package mapping

import (
	"context"
	"errors"
	"fmt"
	"time"

	"slowpath/internal/cli"
	"slowpath/internal/report/layout"
	"slowpath/internal/source"
	"slowpath/internal/topology/views"
	"slowpath/internal/topology/watch"
	"slowpath/internal/wire/target"
)

// Changes are the flags of topology watch.
type Changes struct {
	Duration        time.Duration
	Most            string // commands to the whole cluster
	Publish, AsJSON bool

	perSecond float64
}

// The bounds of --max-commands: below the first, a change would be seen after seconds; the second is more than any
// cluster needs.
const leastCommands, mostCommands = 10, 10_000

// Check reads what flags say.
func (f *Changes) Check() (err error) {
	if err := cli.NotNegative("for", f.Duration); err != nil {
		return err
	}
	f.perSecond, err = cli.ParseRateUpTo(f.Most, mostCommands)
	if err == nil && f.perSecond < leastCommands {
		err = fmt.Errorf("at least %d/s are needed", leastCommands)
	}
	if err != nil {
		return cli.Usagef("--max-commands %q: %w", f.Most, err)
	}
	return nil
}

// Run shows the changes of the cluster of targets until the time is up, ctx ends, or nobody reads any more. With
// cluster the password may be sent to all of its nodes.
func (f *Changes) Run(ctx context.Context, a *cli.Program, targets []target.Target, cluster bool) error {
	ctx, cancel := source.Window(ctx, f.Duration)
	defer cancel()
	a.OnInterrupt("the summary follows")
	go a.AwaitReaderGone(ctx, cancel)
	a.Progress("connecting to %s", targets[0].Addr())
	begun := false
	s, err := watch.Watch(ctx, watch.Options{
		Seeds: targets, Cluster: cluster, PerSecond: f.perSecond, Publish: f.Publish,
		Ready: func(r watch.Ready) {
			begun = true
			a.ProgressDone()
			a.Say(views.Watching(r, f.Most))
			a.Progress("watching; Ctrl-C ends it")
		},
		Event: func(e watch.Event) error {
			a.ProgressDone() // also where the same terminal is stdout
			defer a.Progress("watching; Ctrl-C ends it")
			return f.print(a, e)
		},
		Note: a.Say,
	})
	a.ProgressDone()
	if begun {
		a.Say(views.Watched(s, f.Publish))
	}
	if errors.Is(err, watch.ErrNotCluster) {
		return cli.Usage(err)
	}
	return err
}

func (f *Changes) print(a *cli.Program, e watch.Event) error {
	var err error
	if f.AsJSON {
		err = layout.JSONLine(a.Stdout, "a change", e)
	} else {
		err = a.Line(e.Time.Format("15:04:05.000") + "  " + layout.OneLine(e.String()))
	}
	if err != nil {
		return fmt.Errorf("writing the changes: %w", err)
	}
	return nil
}
