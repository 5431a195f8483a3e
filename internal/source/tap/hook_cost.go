//go:build linux

package tap

import (
	"io"
	"time"

	"slowpath/internal/recording/series"
)

// hookCost has the kernel measure the time of the programs until the end of the first second of a watch. It begins with
// Load, since that needs CAP_SYS_ADMIN. The kernel reads its clock twice for each run while it does, and for all
// programs of the host: that is too much for longer.
type hookCost struct {
	measuring io.Closer // nil: not any more, or the kernel cannot (before 5.8, or without CAP_SYS_ADMIN)
	sinceNs   int64
	runs      uint64
	ns        time.Duration
}

func (t *Tap) beginHookCost() {
	t.cost.sinceNs = t.Clock.Now()
	t.cost.runs, t.cost.ns = t.hookRuns()
}

// endHookCost writes how often the programs ran, and how long.
func (t *Tap) endHookCost() {
	if t.cost.measuring == nil {
		return
	}
	now := t.Clock.Now()
	runs, ns := t.hookRuns()
	_ = t.cost.measuring.Close()
	t.cost.measuring = nil
	t.recorder.sample.measured(ns-t.cost.ns, t.endsOfCalls())
	t.sampleSelf(now, series.TapHookRuns, float64(runs-t.cost.runs))
	t.sampleSelf(now, series.TapHookTime, float64(ns-t.cost.ns))
	t.sampleSelf(now, series.TapHookMeasured, float64(now-t.cost.sinceNs))
}

// hookRuns are all runs of the programs while the kernel counted them, and their time.
func (t *Tap) hookRuns() (runs uint64, ns time.Duration) {
	for _, p := range t.kernel.coll.Programs {
		if s, err := p.Stats(); err == nil {
			runs, ns = runs+s.RunCount, ns+s.Runtime
		}
	}
	return runs, ns
}
