package scenario

import (
	"context"
	"math/rand/v2"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// bigKeyIO reads strings of 32 MB on eight connections at once.
var bigKeyIO = Scenario{
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
var bigKeyIOCollection = Scenario{
	ID:    "big-key-io-collection",
	Cause: "big-key-io",
	Title: "HGETALL of hashes with 500 fields of 100 kB",
	Fixes: []string{"read-a-part"},
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
		part := l.Fixed("read-a-part")
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 6, Rate: 60, Command: func(r *rand.Rand, _ int) []string {
			if part {
				return []string{"HMGET", "doc:" + itoa(r.IntN(4)), "field:" + itoa(r.IntN(500))}
			}
			return []string{"HGETALL", "doc:" + itoa(r.IntN(4))}
		}})
		return Scene{Target: s.Addr}, nil
	},
}

// bigReads reads big strings.
var bigReads = Fault{
	Name:    "big-key-io",
	Cause:   "big-key-io",
	Needs:   Needs{Topologies: oneServer},
	Calls:   true,
	Culprit: "gallery",
	Draw: func(r *rand.Rand) Strength {
		return Strength{
			"value_mb": between(r, 0.1, 32), "connections": float64(1 + r.IntN(8)), "per_second": between(r, 3, 60),
		}
	},
	Prepare: func(ctx context.Context, _ *Lab, st *Stage, s Strength) error {
		return fillBig(ctx, st.Server, "blob:", 4, int(s["value_mb"]*(1<<20)))
	},
	On: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		l.Load(ctx, st.load("gallery", s.int("connections"), s["per_second"], func(r *rand.Rand, _ int) []string {
			return []string{"GET", "blob:" + itoa(r.IntN(4))}
		}))
		return nil
	},
}
