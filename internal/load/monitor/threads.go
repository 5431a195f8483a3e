//go:build linux

package monitor

import (
	"runtime"
	"time"

	"slowpath/internal/load/bottleneck"
)

// threadTimes is the sum over all threads of the load's process.
type threadTimes struct{ run, ready time.Duration }

func (w *Watch) readThreads() {
	if !w.OwnThreads && w.PID == 0 {
		return
	}
	u, err := w.own.Read()
	if err != nil {
		return
	}
	var sum threadTimes
	for _, t := range u.Threads {
		sum.run += t.Run
		sum.ready += t.Ready
	}
	w.threads.add(w.Clock.Now(), sum)
}

// observeThreads divides the sum over the CPUs that the process uses at once, since a goroutine runs on any thread.
func (w *Watch) observeThreads(endNs int64, window time.Duration, g *bottleneck.Generator) {
	from, to, scale, ok := w.threads.span(endNs, window)
	if !ok {
		return
	}
	n := runtime.NumCPU()
	if w.PID == 0 {
		n = min(runtime.GOMAXPROCS(0), n)
	}
	if w.Parallelism > 0 {
		n = min(n, w.Parallelism)
	}
	each := scale / float64(n)
	g.Threads = nil
	for range n {
		g.Threads = append(g.Threads, bottleneck.Thread{
			CPU:      scaled(to.run-from.run, each),
			RunQueue: scaled(to.ready-from.ready, each),
		})
	}
}
