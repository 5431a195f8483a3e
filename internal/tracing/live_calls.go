package tracing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"slowpath/internal/cli"
	"slowpath/internal/clock"
	"slowpath/internal/format"
	"slowpath/internal/outfile"
	"slowpath/internal/recording"
	"slowpath/internal/source"
	"slowpath/internal/source/host"
	"slowpath/internal/source/tap"
	"slowpath/internal/trace"
)

// waitingCalls may wait for stdout: a terminal that is stopped for a while must not make reports of the kernel be lost.
const waitingCalls = 65536

// live shows what the kernel sees.
func (t *tracing) live(ctx context.Context, nodes []tap.Node, notes []string) error {
	if t.flags.Record == "" {
		return t.into(ctx, nodes, notes, nil)
	}
	file, err := recording.Create(t.flags.Record, 0)
	if err != nil {
		return cli.Usage(err)
	}
	err = t.into(ctx, nodes, notes, file)
	closeErr := file.Close()
	if errors.Is(err, cli.ErrMissing) {
		outfile.Remove(t.flags.Record) // nothing was watched
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
		SamplePerSecond: int(math.Ceil(t.flags.perSecond)), Processes: t.flags.Processes,
		Quota: (&host.Quotas{FS: host.Root{}, Clock: clk}).Of, Budget: t.flags.tapPart,
	})
	if err != nil {
		return fmt.Errorf("no call can be seen, a privilege or kernel feature is %w: %s; %s; without it `slowpath "+
			"doctor` sees its own calls, the server and its host", cli.ErrMissing, tap.Reason(err), tap.Remedy(err))
	}
	defer kernel.Close()
	t.app.Dropper([]string{t.flags.Record, t.flags.Perfetto}, nil, nil)()
	for _, n := range notes {
		t.note("%s", n)
	}
	for _, b := range kernel.Blind() {
		t.note("not seen: %s: %s; %s", b.What, b.Why, b.Enable)
	}
	trace.Begin(t.watch, clk.Now(), t.app.Version, t.slow, nodes)
	ctx, cancel := source.Window(ctx, t.flags.Duration)
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
	if pid := t.flags.Processes.PID; pid != 0 && host.AwaitEnd(ctx, nil, pid) {
		t.note("process %d has ended, and the trace with it; --comm or --container go on with the next process", pid)
		cancel()
	}
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
