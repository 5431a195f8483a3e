package incident

import (
	"context"
	"math"
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
		if err := fillSets(ctx, s, "", 500); err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 60, Command: intersect("")})
		return Scene{Target: s.Addr}, nil
	},
}

// intersections keep the main thread busy all the time.
var intersections = Fault{
	Name:  "main-thread-saturated",
	Cause: "main-thread-saturated",
	Needs: Needs{Topologies: oneServer},
	Calls: true,
	Draw:  drawIntersections,
	Prepare: func(ctx context.Context, _ *Lab, st *Stage, s Strength) error {
		return fillSets(ctx, st.Server, "", s.int("members"))
	},
	On: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		l.Load(ctx, st.load(s.int("connections"), 0, intersect("")))
		return nil
	},
}

func drawIntersections(r *rand.Rand) Strength {
	return Strength{"connections": math.Round(between(r, 2, 60)), "members": between(r, 400, 2000)}
}

// intersect intersects two of the sets whose keys begin with a prefix.
func intersect(prefix string) func(*rand.Rand, int) []string {
	return func(r *rand.Rand, _ int) []string {
		return []string{"SINTER", prefix + "set:" + itoa(r.IntN(10)), prefix + "set:" + itoa(10+r.IntN(10))}
	}
}

// fillSets makes the sets, with a number of members each, of which two sets have none in common.
func fillSets(ctx context.Context, s *fleet.Instance, prefix string, members int) error {
	for i := range 20 {
		const script = "for i=ARGV[1],ARGV[2] do redis.call('SADD',ARGV[3],ARGV[4]..i) end"
		if err := evalSteps(ctx, s, script, members, prefix+"set:"+itoa(i), "member:"+itoa(i)+":"); err != nil {
			return err
		}
	}
	return nil
}
