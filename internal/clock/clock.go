// Package clock gives the one time scale of a recording: nanoseconds since the Unix epoch that never jump.
package clock

import "time"

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
