// Package tracing shows the calls that a command line asks for, one by one: as the kernel sees them, or of recordings.
package tracing

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"slowpath/internal/cli/named"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/report"
	"slowpath/internal/report/layout"
	"slowpath/internal/source/tap"
	"slowpath/internal/trace"
)

// tracing is a trace that runs, or that is read from a recording.
type tracing struct {
	app     *named.CommandLine
	flags   *Options
	slow    time.Duration
	watch   *trace.Watch
	export  *trace.Perfetto // nil: none is wanted
	out     *os.File        // of the export; nil once it is written
	several bool            // servers are watched
	groups  trace.Groups
	calls   chan trace.Call // on their way to stdout
	missed  atomic.Int64    // calls that stdout was too slow for
	shown   int
}

// Run shows the calls of files, recordings or packet captures; without any what the kernel sees, until the time is up,
// enough was shown, ctx ends, or nobody reads any more. Servers gives those to be traced, and what cannot be seen of
// them.
func Run(ctx context.Context, a *named.CommandLine, f *Options, files []string,
	servers func() (nodes []tap.Node, notes []string, err error),
) error {
	t := &tracing{app: a, flags: f}
	if err := t.makeExport(); err != nil {
		return err
	}
	defer t.leaveExport()
	if len(files) > 0 {
		return t.replay(ctx, files)
	}
	nodes, notes, err := servers()
	if err != nil {
		return err
	}
	return t.live(ctx, nodes, notes)
}

// begin prepares the watch.
func (t *tracing) begin(slow time.Duration, tee recording.Sink, show func(trace.Call)) {
	t.slow, t.groups.Each = slow, t.flags.Each
	t.watch = trace.NewWatch(trace.Options{
		Filter: t.flags.Filter, Slow: slow, SamplePerSecond: t.flags.perSecond,
		Perfetto: t.export, Tee: tee, Show: show,
	})
}

func (t *tracing) enough() bool { return t.flags.Count > 0 && t.shown >= t.flags.Count }

// take is given the next call that is to be shown.
func (t *tracing) take(c trace.Call) error {
	if t.enough() {
		return nil
	}
	t.shown++
	switch {
	case t.flags.AsJSON:
		t.app.ProgressDone()
		return layout.JSONLine(t.app.Stdout, "a call", c)
	case c.Ns < int64(t.slow):
		return t.print([]trace.Group{{Worst: c}})
	}
	t.groups.Add(c)
	return nil
}

func (t *tracing) print(groups []trace.Group) error {
	for _, g := range groups {
		t.app.ProgressDone()
		if err := report.Calls(t.app.Stdout, g, report.CallStyle{
			Style: t.app.Style(), SlowNs: int64(t.slow),
			Nodes: t.several,
		}); err != nil {
			return err
		}
	}
	return nil
}

// finish prints what is left, the summary, and the export. After an error of stdout there is nobody to print for.
func (t *tracing) finish(before error, took time.Duration) error {
	s := t.watch.Summary()
	s.Seconds, s.All, s.Shown = took.Seconds(), t.flags.All, t.shown
	if n := t.missed.Load(); n > 0 {
		t.note("not shown: %s, as stdout was too slow", format.Count(n, "call"))
	}
	if s.Calls == 0 && s.Replies == 0 {
		t.note("no call was seen: there was none over TCP, or its server has another address (slowpath trace " +
			"HOST:PORT)")
	}
	switch {
	case before != nil:
	case t.flags.AsJSON:
		t.note("%s", strings.Join(report.CallsFacts(s), ", "))
	default:
		if err := t.print(t.groups.All()); err != nil {
			return err
		}
		if err := report.CallsSummary(t.app.Stdout, s, t.shown > 0, t.app.Style()); err != nil {
			return err
		}
	}
	return t.writeExport()
}

// note prints a note to stderr, apart from the data.
func (t *tracing) note(format string, args ...any) {
	t.app.Say(fmt.Sprintf(format, args...))
}
