package incident

import (
	"context"
	"math/rand/v2"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// bigKeyIO reads strings of 32 MB on eight connections at once.
var bigKeyIO = Incident{
	ID:    "big-key-io",
	Cause: "big-key-io",
	Title: "GET of 32 MB values on eight connections at once",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		if err := fillBig(ctx, s, "blob:", 8, 32<<20); err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 4, Rate: 500, Command: traffic.Mixed(1000)})
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 8, Command: func(r *rand.Rand, _ int) []string {
			return []string{"GET", "blob:" + itoa(r.IntN(8))}
		}})
		return Scene{Target: s.Addr}, nil
	},
}

// bigKeyIOCollection reads hashes of few big fields.
var bigKeyIOCollection = Incident{
	ID:    "big-key-io-collection",
	Cause: "big-key-io",
	Title: "HGETALL of hashes with 500 fields of 100 kB",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		for h := range 4 {
			script := "for i=ARGV[1],ARGV[2] do " +
				"redis.call('HSET',ARGV[3],'field:'..i,string.rep('0123456789',10000)) end"
			if err := evalSteps(ctx, s, script, 500, "doc:"+itoa(h)); err != nil {
				return Scene{}, err
			}
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 4, Rate: 500, Command: traffic.Mixed(1000)})
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 6, Rate: 60, Command: func(r *rand.Rand, _ int) []string {
			return []string{"HGETALL", "doc:" + itoa(r.IntN(4))}
		}})
		return Scene{Target: s.Addr}, nil
	},
}
