package incident

import (
	"context"
	"math/rand/v2"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// mainThreadSaturated asks for more intersections than one core can compute. Each takes about 50 µs, and none is slow.
var mainThreadSaturated = Incident{
	ID:    "main-thread-saturated",
	Cause: "main-thread-saturated",
	Title: "60 callers that intersect sets of 500 members as fast as the replies come",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		const script = "for i=0,19 do for j=1,500 do redis.call('SADD','set:'..i,'member:'..i..':'..j) end end"
		if _, err := s.Do(ctx, "EVAL", script, "0"); err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 60, Command: func(r *rand.Rand, _ int) []string {
			return []string{"SINTER", "set:" + itoa(r.IntN(10)), "set:" + itoa(10+r.IntN(10))}
		}})
		return Scene{Target: s.Addr}, nil
	},
}
