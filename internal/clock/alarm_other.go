//go:build !linux

package clock

import (
	"context"
	"time"
)

// Alarm sleeps with the runtime's timers.
type Alarm struct{ ctx context.Context }

// NewAlarm makes an alarm whose sleeps end early when ctx does.
func NewAlarm(ctx context.Context) (*Alarm, error) { return &Alarm{ctx}, nil }

// Sleep sleeps for d. It reports false when the context has ended.
func (a *Alarm) Sleep(d time.Duration) bool { return sleepByTimer(a.ctx, d) }

// Close frees the timer.
func (a *Alarm) Close() error { return nil }
