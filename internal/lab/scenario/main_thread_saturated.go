package scenario

import (
	"context"
	"math"
	"math/rand/v2"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// mainThreadSaturated asks for more intersections than one core can compute. Each takes about 50 µs, and none is slow.
var mainThreadSaturated = Scenario{
	ID:    "main-thread-saturated",
	Cause: "main-thread-saturated",
	Title: "60 callers that intersect sets of 500 members as fast as the replies come",
	Fixes: []string{"cheaper-command"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		if err := fillSets(ctx, s, "", 500); err != nil {
			return Scene{}, err
		}
		load := traffic.Spec{Addr: s.Addr, Conns: 60, Command: intersect("")}
		if l.Fixed("cheaper-command") {
			load.Rate, load.Command = savedIntersections, intersectSaved(100, savedIntersections)
		}
		l.Load(ctx, load)
		return Scene{Target: s.Addr}, nil
	},
}

// savedIntersections is how many replies per second the callers got of a server that computed each, and so how many
// they ask for where results are kept.
const savedIntersections = 25_000

// intersectSaved reads what is kept of the intersections. Each of them is computed again once per second, by one of all
// connections; rate is that of all of them per second.
func intersectSaved(results, rate int) func(*rand.Rand, int) []string {
	command := intersect("")
	return func(r *rand.Rand, k int) []string {
		args := command(r, k)
		saved := "saved:" + args[1] + ":" + args[2]
		if r.IntN(rate/results) == 0 {
			return []string{"SINTERSTORE", saved, args[1], args[2]}
		}
		return []string{"SMEMBERS", saved}
	}
}

// intersections keep the main thread busy all the time.
var intersections = Fault{
	Name:    "main-thread-saturated",
	Cause:   "main-thread-saturated",
	Needs:   Needs{Topologies: oneServer},
	Calls:   true,
	Culprit: "matching",
	Draw:    drawIntersections,
	Prepare: func(ctx context.Context, _ *Lab, st *Stage, s Strength) error {
		return fillSets(ctx, st.Server, "", s.int("members"))
	},
	On: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		l.Load(ctx, st.load("matching", s.int("connections"), 0, intersect("")))
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
