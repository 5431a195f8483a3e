package watching

import (
	"context"
	"fmt"
	"sync"
	"time"

	"slowpath/internal/cli"
	"slowpath/internal/recording"
	"slowpath/internal/source"
)

// runCounted runs a watch and shows how far it is. started is called when it has begun.
func runCounted(ctx context.Context, p *cli.Program, o source.Options, sink recording.ProfileSink, started func(),
) error {
	var once sync.Once
	var stop func()
	o.Progress = func(s string) { p.Progress("%s", s) }
	o.Started = func(nodes int) {
		once.Do(func() { started(); stop = countdown(ctx, p, o, nodes) })
	}
	err := source.Run(ctx, o, sink)
	if stop != nil {
		stop()
	}
	p.ProgressDone()
	return err
}

// countdown shows how long the watch has run; the function that it returns ends it.
func countdown(ctx context.Context, p *cli.Program, o source.Options, nodes int) func() {
	what := o.Targets[0].Addr()
	if nodes > 1 {
		what = fmt.Sprintf("%s and %d more", what, nodes-1)
	}
	ended := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		start := time.Now()
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for stopping := ctx.Done(); ; {
			p.Progress("%s", countdownLine(time.Since(start), o.For, ctx.Err() != nil, what))
			select {
			case <-ended:
				return
			case <-stopping:
				stopping = nil
			case <-tick.C:
			}
		}
	})
	return func() { close(ended); wg.Wait() }
}

// countdownLine begins with what changes, since the end of a long line is cut.
func countdownLine(since, total time.Duration, stopping bool, what string) string {
	seconds := since.Round(time.Second)
	switch {
	case stopping:
		return "ending the watch"
	case total == 0:
		return fmt.Sprintf("%v, watching %s; Ctrl-C ends it", seconds, what)
	}
	return fmt.Sprintf("%v of %v, watching %s; Ctrl-C ends it early", seconds, total, what)
}
