package scenario

import (
	"context"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// timings are how long the callers of a scenario waited, by their own clocks. They are written to the lab's log when
// the scenario ends, and prove the scenario without the tool that is graded by it.
type timings struct {
	of string // calls, or callers
	mu sync.Mutex
	h  *hdrhistogram.Histogram // nanoseconds
}

// longestTiming bounds the histogram; what took longer counts as this.
const longestTiming = time.Minute

// timings starts a histogram of calls. Start it before the callers, so that it is printed after they have ended.
func (l *Lab) timings(of string) *timings {
	t := &timings{of: of, h: hdrhistogram.New(1, int64(longestTiming), 3)}
	l.Defer(func(context.Context) error { t.log(l); return nil })
	return t
}

// add counts one call; several callers may use it at a time.
func (t *timings) add(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = t.h.RecordValue(int64(min(d, longestTiming))) // never out of its range
}

// time counts one call that f makes, failed or not.
func (t *timings) time(f func() error) error {
	start := time.Now()
	err := f()
	t.add(time.Since(start))
	return err
}

func (t *timings) log(l *Lab) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := func(percentile float64) time.Duration {
		return time.Duration(t.h.ValueAtQuantile(percentile)).Round(10 * time.Microsecond)
	}
	l.Logf("%s: %d calls, p50 %v, p99 %v, max %v", t.of, t.h.TotalCount(), at(50), at(99), at(100))
}
