package scenario

import (
	"context"
	"strconv"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// activeExpireCycle lets two million keys expire at the same moment, at the start of the watch.
var activeExpireCycle = Scenario{
	ID:    "active-expire-cycle",
	Cause: "active-expire-cycle",
	Title: "2 million keys that expire at the same moment",
	Fixes: []string{"spread-expiry"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		// First without the expiry: keys that expire while others are made are gone before doctor watches.
		if err := evalSteps(ctx, s, "for i=ARGV[1],ARGV[2] do redis.call('SET','token:'..i,'v','PX','600000') end",
			2_000_000); err != nil {
			return Scene{}, err
		}
		at := strconv.FormatInt(time.Now().Add(5*time.Second).UnixMilli(), 10)
		spread := 1000 * l.FixedNumber("spread-expiry", 0)
		if err := evalSteps(ctx, s, "for i=ARGV[1],ARGV[2] do redis.call('PEXPIREAT','token:'..i,"+
			"ARGV[3]+math.random(0,ARGV[4])) end", 2_000_000, at, itoa(spread)); err != nil {
			return Scene{}, err
		}
		if err := sleepUntil(ctx, at); err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 2000, Command: traffic.Mixed(10_000)})
		return Scene{Target: s.Addr}, nil
	},
}

// sleepUntil waits for the expiry of keys, in milliseconds since the epoch. There is no state to poll for but the
// expiry itself.
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
