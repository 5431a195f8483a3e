package incident

import (
	"context"
	"math/rand/v2"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// mainThreadSaturated asks for more small lists than one core can give: each command takes some 10 µs, none is slow.
var mainThreadSaturated = Incident{
	ID:    "main-thread-saturated",
	Cause: "main-thread-saturated",
	Title: "60 callers that read lists of 100 elements as fast as the replies come",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		const script = "for i=0,99 do for j=1,100 do redis.call('RPUSH','list:'..i,j) end end"
		if _, err := s.Do(ctx, "EVAL", script, "0"); err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 60, Command: func(r *rand.Rand, _ int) []string {
			return []string{"LRANGE", "list:" + itoa(r.IntN(100)), "0", "99"}
		}})
		return Scene{Target: s.Addr}, nil
	},
}
