package incident

import (
	"context"
	"strconv"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// activeExpireCycle lets two million keys expire at the same moment, at the start of the watch.
var activeExpireCycle = Incident{
	ID:    "active-expire-cycle",
	Cause: "active-expire-cycle",
	Title: "2 million keys that expire at the same moment",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		// First without: what expires while the others are made is gone before the watch.
		if err := steps(ctx, s, "for i=ARGV[1],ARGV[2] do redis.call('SET','token:'..i,'v','PX','600000') end",
			2_000_000); err != nil {
			return Scene{}, err
		}
		at := strconv.FormatInt(time.Now().Add(5*time.Second).UnixMilli(), 10)
		if err := steps(ctx, s, "for i=ARGV[1],ARGV[2] do redis.call('PEXPIREAT','token:'..i,ARGV[3]) end", 2_000_000,
			at); err != nil {
			return Scene{}, err
		}
		if err := sleepUntil(ctx, at); err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 2000, Command: traffic.Mixed(10_000)})
		return Scene{Target: s.Addr}, nil
	},
}

// sleepUntil waits for a moment in milliseconds since the epoch, the expiry of keys; no state can be polled for that is
// not expiry itself.
func sleepUntil(ctx context.Context, unixMilli string) error {
	ms, err := strconv.ParseInt(unixMilli, 10, 64)
	if err != nil {
		return err
	}
	select {
	case <-time.After(time.Until(time.UnixMilli(ms))):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
