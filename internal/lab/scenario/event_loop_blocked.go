package scenario

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// eventLoopBlocked has a server write its log, with a line for each new connection, to a pipe whose reader pauses for a
// second and a half of each two and a half.
var eventLoopBlocked = Scenario{
	ID:    "event-loop-blocked",
	Cause: "event-loop-blocked",
	Title: "a server that logs each connection to a pipe of one page, which is not read for 1.5 s of each 2.5 s",
	Fixes: []string{"log-less"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		r, w, err := os.Pipe()
		if err != nil {
			return Scene{}, err
		}
		defer w.Close()
		l.Defer(func(context.Context) error { return r.Close() })
		if _, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, os.Getpagesize()); err != nil {
			return Scene{}, fmt.Errorf("making a pipe small: %w", err)
		}
		l.run(ctx, func(ctx context.Context) {
			readFor(ctx, r, 3*time.Second) // while it starts
			for ctx.Err() == nil {
				pause(ctx, 1500*time.Millisecond)
				readFor(ctx, r, time.Second)
			}
		})
		s, err := l.Start(ctx, fleet.Spec{Config: []string{"loglevel verbose"}, Log: w})
		if err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 2000, Command: traffic.Mixed(10_000)})
		l.Every(ctx, 10*time.Millisecond, func(ctx context.Context) error {
			_, err := s.Do(ctx, "PING") // on a new connection
			return err
		})
		return Scene{Target: s.Addr}, nil
	},
}

// readFor reads a pipe for a while, as fast as it is filled.
func readFor(ctx context.Context, r *os.File, d time.Duration) {
	end := time.Now().Add(d)
	_ = r.SetReadDeadline(end) // a pipe of os.Pipe has deadlines
	buf := make([]byte, 1<<12)
	for ctx.Err() == nil {
		if _, err := r.Read(buf); err != nil {
			return
		}
	}
}
