package scenario

import (
	"context"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// slowCommandNoSlowlog reads a big set twice a second while SLOWLOG is off.
var slowCommandNoSlowlog = Scenario{
	ID:    "slow-command-no-slowlog",
	Cause: "slow-command",
	Title: "SMEMBERS of 400 000 members, with SLOWLOG off",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{Config: []string{"slowlog-log-slower-than -1"}})
		if err != nil {
			return Scene{}, err
		}
		if err := evalSteps(ctx, s, "for i=ARGV[1],ARGV[2] do redis.call('SADD','big:set','member:'..i) end",
			400_000); err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 2000, Command: traffic.Mixed(10_000)})
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 1, Rate: 2, Command: traffic.Always("SMEMBERS", "big:set")})
		return Scene{Target: s.Addr}, nil
	},
}
