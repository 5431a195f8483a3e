package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"slowpath/internal/cli"
	"slowpath/internal/clock"
	"slowpath/internal/format"
	"slowpath/internal/outfile"
	"slowpath/internal/recording"
	"slowpath/internal/report"
	"slowpath/internal/report/layout"
	"slowpath/internal/source"
	"slowpath/internal/source/host"
	"slowpath/internal/source/tap"
	"slowpath/internal/trace"
)

// tracing is a trace that runs, or that is read from a recording.
type tracing struct {
	app     *app
	flags   *traceFlags
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

// waitingCalls may wait for stdout: a terminal that is stopped for a while must not make reports of the kernel be lost.
const waitingCalls = 65536

// live shows what the kernel sees until the time is up, enough was shown, ctx ends, or nobody reads any more.
func (t *tracing) live(ctx context.Context, nodes []tap.Node, notes []string) error {
	if t.flags.record == "" {
		return t.into(ctx, nodes, notes, nil)
	}
	file, err := recording.Create(t.flags.record, 0)
	if err != nil {
		return cli.Usage(err)
	}
	err = t.into(ctx, nodes, notes, file)
	closeErr := file.Close()
	if errors.Is(err, cli.ErrMissing) {
		os.Remove(t.flags.record) // nothing was watched
	}
	return errors.Join(err, closeErr)
}

// into is live, with a recording if tee is one. What cannot be seen is said once something can.
func (t *tracing) into(ctx context.Context, nodes []tap.Node, notes []string, tee recording.Sink) error {
	clk := clock.New()
	defer t.app.ProgressDone()
	t.app.OnInterrupt("the summary follows")
	t.app.Progress("loading the kernel programs")
	t.calls = make(chan trace.Call, waitingCalls)
	t.begin(cmp.Or(t.flags.slow, tap.DefaultSlow), tee, func(c trace.Call) {
		select {
		case t.calls <- c:
		default:
			t.missed.Add(1)
		}
	})
	kernel, err := tap.Open(tap.Options{
		Clock: clk, Files: host.Root{}, Sink: t.watch, Nodes: nodes, Slow: t.slow, MinWork: minWork(t.slow),
		SamplePerSecond: int(math.Ceil(t.flags.perSecond)), Processes: t.flags.processes.ProcessFilter,
		Quota: (&host.Quotas{FS: host.Root{}, Clock: clk}).Of, Budget: t.flags.tapPart,
	})
	if err != nil {
		return fmt.Errorf("no call can be seen, a privilege or kernel feature is %w: %s; %s; without it `slowpath "+
			"doctor` sees its own calls, the server and its host", cli.ErrMissing, tap.Reason(err), tap.Remedy(err))
	}
	defer kernel.Close()
	t.app.dropper([]string{t.flags.record, t.flags.perfetto}, nil, nil)()
	for _, n := range notes {
		t.note("%s", n)
	}
	for _, b := range kernel.Blind() {
		t.note("not seen: %s: %s; %s", b.What, b.Why, b.Enable)
	}
	trace.Begin(t.watch, clk.Now(), version, t.slow, nodes)
	ctx, cancel := source.Window(ctx, t.flags.duration)
	ended := make(chan error, 1)
	go func() { ended <- kernel.Run(ctx) }()
	var end sync.WaitGroup
	end.Go(func() { t.endWith(ctx, cancel) })
	defer end.Wait()
	defer cancel()
	t.several = slices.ContainsFunc(nodes, func(n tap.Node) bool { return n.Address != nodes[0].Address })
	start := time.Now()
	stopped, showErr := t.show(clk, nodes, ended)
	if !stopped {
		cancel()
		err = <-ended
	}
	t.app.ProgressDone()
	trace.End(t.watch, clk.Now())
	return errors.Join(showErr, err, t.finish(showErr, time.Since(start)))
}

// endWith ends the trace with the process that it is about: there is nothing more to see of it.
func (t *tracing) endWith(ctx context.Context, cancel func()) {
	if pid := t.flags.processes.PID; pid != 0 && host.AwaitEnd(ctx, nil, pid) {
		t.note("process %d has ended, and the trace with it; --comm or --container go on with the next process", pid)
		cancel()
	}
}

// begin prepares the watch.
func (t *tracing) begin(slow time.Duration, tee recording.Sink, show func(trace.Call)) {
	t.slow, t.groups.Each = slow, t.flags.each
	t.watch = trace.NewWatch(trace.Options{
		Filter: t.flags.filter, Slow: slow, SamplePerSecond: t.flags.perSecond,
		Perfetto: t.export, Tee: tee, Show: show,
	})
}

// minWork is what a server or a thread must have done to be named as a culprit: a part of what is slow that is worth
// naming.
func minWork(slow time.Duration) time.Duration {
	const least, part = 20 * time.Microsecond, 10
	return min(max(slow/part, least), tap.DefaultMinWork)
}

// show prints calls until the watch has ended, which stopped reports, or enough was shown.
func (t *tracing) show(clk clock.Clock, nodes []tap.Node, ended <-chan error) (stopped bool, err error) {
	tick, second, start := time.NewTicker(100*time.Millisecond), time.NewTicker(time.Second), time.Now()
	defer tick.Stop()
	defer second.Stop()
	t.showHowFar(start, nodes)
	for {
		select {
		case c := <-t.calls:
			err = t.take(c)
		case <-tick.C:
			err = t.print(t.groups.Due(clk.Now()))
		case <-second.C:
			t.showHowFar(start, nodes)
		case err = <-ended:
			for len(t.calls) > 0 && err == nil {
				err = t.take(<-t.calls)
			}
			return true, err
		}
		if err != nil || t.enough() {
			return false, err
		}
	}
}

func (t *tracing) showHowFar(start time.Time, nodes []tap.Node) {
	t.app.Progress("%s, %s shown, watching %s; Ctrl-C ends it with a summary", time.Since(start).Round(time.Second),
		format.Count(t.shown, "call"), watched(nodes))
}

func (t *tracing) enough() bool { return t.flags.count > 0 && t.shown >= t.flags.count }

// watched names the servers that are watched.
func watched(nodes []tap.Node) string {
	seen := map[string]bool{}
	for _, n := range nodes {
		seen[n.Address] = true
	}
	if len(seen) > 1 {
		return fmt.Sprintf("%s and %d more", nodes[0].Address, len(seen)-1)
	}
	return nodes[0].Address
}

// take is given the next call that is to be shown.
func (t *tracing) take(c trace.Call) error {
	if t.enough() {
		return nil
	}
	t.shown++
	switch {
	case t.flags.asJSON:
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
	s.Seconds, s.All, s.Shown = took.Seconds(), t.flags.all, t.shown
	if n := t.missed.Load(); n > 0 {
		t.note("not shown: %s, as stdout was too slow", format.Count(n, "call"))
	}
	if s.Calls == 0 && s.Replies == 0 {
		t.note("no call was seen: there was none over TCP, or its server has another address (slowpath trace " +
			"HOST:PORT)")
	}
	switch {
	case before != nil:
	case t.flags.asJSON:
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

// makeExport opens the file of an export: a place that cannot be written is known before the watch.
func (t *tracing) makeExport() error {
	if t.flags.perfetto == "" {
		return nil
	}
	out, err := outfile.Create(t.flags.perfetto)
	switch {
	case errors.Is(err, os.ErrExist):
		return cli.Usagef("%s exists already; name another file for --perfetto or remove it", t.flags.perfetto)
	case err != nil:
		return cli.Usage(fmt.Errorf("making the file for --perfetto: %w", err))
	}
	t.out, t.export = out, &trace.Perfetto{}
	t.app.Scratch.Begun(t.flags.perfetto)
	return nil
}

// leaveExport removes the file of an export that was not written.
func (t *tracing) leaveExport() {
	if t.out != nil {
		t.out.Close()
		os.Remove(t.flags.perfetto)
		t.app.Scratch.Whole(t.flags.perfetto)
	}
}

func (t *tracing) writeExport() error {
	if t.out == nil {
		return nil
	}
	done := t.app.Working("writing %s", t.flags.perfetto)
	err := errors.Join(t.export.Write(t.out), t.out.Close())
	done()
	t.app.Scratch.Whole(t.flags.perfetto)
	t.out = nil
	if err != nil {
		return fmt.Errorf("writing %s: %w", t.flags.perfetto, err)
	}
	if t.export.Omitted > 0 {
		t.note("%d calls and waits had no room in %s; narrow it with filters, or watch for less time", t.export.Omitted,
			t.flags.perfetto)
	}
	t.note("%s: open it in https://ui.perfetto.dev", t.flags.perfetto)
	return nil
}

// replay shows the calls of a recording, or of several as one. They are slow as they were when it was made, unless
// --slow says otherwise.
func (t *tracing) replay(paths []string) error {
	rec, notes, err := t.app.openRecordings(paths, true)
	if err != nil {
		return err
	}
	t.app.notes(notes)
	if rec.Damage != "" {
		t.note("%s", rec.Damage)
	}
	if !rec.SeesCalls() {
		t.note("%s was made without the tap: it has no calls to show", paths[0])
	}
	t.several = len(rec.Nodes()) > 1
	var printErr error
	t.begin(cmp.Or(t.flags.slow, trace.SlowOf(rec)), nil, func(c trace.Call) {
		if printErr == nil {
			printErr = errors.Join(t.take(c), t.print(t.groups.Due(c.ToNs())))
		}
	})
	done := t.app.Working("looking at %s", format.Count(len(rec.Calls), "call"))
	trace.Replay(rec, t.watch)
	done()
	if t.flags.all && rec.SeesCalls() && t.watch.Summary().Reported < 1 {
		t.note("%s does not have all calls that were not slow; to keep them: slowpath trace --all --record FILE",
			paths[0])
	}
	if f := t.flags.filter; t.shown == 0 && (f.Comm != "" || f.PID != 0) {
		t.note("no call of %s is in %s; it has calls of: %s", t.flags.processes, paths[0],
			cmp.Or(strings.Join(trace.Callers(rec), ", "), "no process of this host"))
	}
	from, to := rec.Window()
	return errors.Join(printErr, t.finish(printErr, time.Duration(to-from)))
}

// note prints a note to stderr, apart from the data.
func (t *tracing) note(format string, args ...any) {
	t.app.Say(fmt.Sprintf(format, args...))
}
