// Package clock gives the one time scale of a recording: nanoseconds since the Unix epoch that never jump.
package clock

import (
	"context"
	"time"
)

// Clock tells the time in nanoseconds since the Unix epoch.
type Clock interface {
	Now() int64
}

// Real is the machine's monotonic clock, anchored once to the wall clock, so that an NTP step during a watch cannot
// reorder what the sources saw.
type Real struct {
	anchor time.Time
	base   int64
}

// New makes a clock that is anchored to the wall time of now.
func New() *Real {
	now := time.Now()
	return &Real{anchor: now, base: now.UnixNano()}
}

// Now is the anchored wall time in nanoseconds.
func (r *Real) Now() int64 { return r.base + int64(time.Since(r.anchor)) }

// At converts a time that carries a monotonic reading (one made by time.Now in this process) to this clock.
func (r *Real) At(t time.Time) int64 { return r.base + int64(t.Sub(r.anchor)) }

type timersKey struct{}

// WithTimers gives a context whose alarms sleep by the timers of the runtime, which testing/synctest controls.
func WithTimers(ctx context.Context) context.Context {
	return context.WithValue(ctx, timersKey{}, true)
}

func sleepByTimer(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
