package incident

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// timings are how long the callers of an incident waited by their own clocks. The lab's log has them when the incident
// ends: they say that it was one, without asking the tool that is graded by it.
type timings struct {
	who string
	mu  sync.Mutex
	h   *hdrhistogram.Histogram // nanoseconds
}

// longestTiming bounds the histogram; what took longer counts as this.
const longestTiming = time.Minute

// timings opens an account of calls. Open it before the callers start, so that it is closed after they have ended.
func (l *Lab) timings(who string) *timings {
	t := &timings{who: who, h: hdrhistogram.New(1, int64(longestTiming), 3)}
	l.Defer(func(context.Context) error { t.print(l.Log); return nil })
	return t
}

// add counts one call; it is safe for use by several callers.
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

func (t *timings) print(w io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := func(q float64) time.Duration {
		return time.Duration(t.h.ValueAtQuantile(q)).Round(10 * time.Microsecond)
	}
	fmt.Fprintf(w, "%s: %d calls, p50 %v, p99 %v, max %v\n", t.who, t.h.TotalCount(), at(50), at(99), at(100))
}
