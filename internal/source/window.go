package source

import (
	"context"
	"time"
)

// Window gives a context that ends after d, or with ctx alone if d is 0. It has no deadline of its own: a call that
// still waits at the end of a watch is unfinished, and not one that ran into a timeout.
func Window(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if d == 0 {
		return ctx, cancel
	}
	timer := time.AfterFunc(d, cancel)
	return ctx, func() { timer.Stop(); cancel() }
}
