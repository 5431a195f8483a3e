package scenario

import (
	"context"
	"math/rand/v2"

	"slowpath/internal/lab/servers"
)

// defragmentation moves what is left of a heap that has lost three of four values, at a share of the main thread. One
// of the lab's servers is built with the allocator that it needs. It is told to begin with the first byte: one that has
// ended could not be switched on again.
var defragmentation = Fault{
	Name:  "event-loop-busy-defrag",
	Cause: "event-loop-busy",
	Needs: Needs{Topologies: oneServer, Servers: []servers.Name{servers.Redis823}},
	Draw: func(r *rand.Rand) Strength {
		return Strength{"keys": between(r, 20_000, 1_500_000), "cycle_percent": between(r, 1, 75)}
	},
	Config: func(_ *Lab, s Strength) []string {
		share := itoa(max(1, s.int("cycle_percent")))
		return []string{
			"active-defrag-ignore-bytes 1", "active-defrag-threshold-lower 0", "active-defrag-cycle-min " + share,
			"active-defrag-cycle-max " + share,
		}
	},
	Prepare: func(ctx context.Context, _ *Lab, st *Stage, s Strength) error {
		const script = "for i=ARGV[1],ARGV[2] do redis.call('SET','part:'..i,string.rep('x',100+i%150)) end " +
			"for i=ARGV[1],ARGV[2] do if i%4>0 then redis.call('DEL','part:'..i) end end"
		return evalSteps(ctx, st.Server, script, s.int("keys"))
	},
	On: func(ctx context.Context, l *Lab, st *Stage, _ Strength) error {
		l.Defer(func(ctx context.Context) error {
			_, err := st.Server.Do(ctx, "CONFIG", "SET", "activedefrag", "no")
			return err
		})
		_, err := st.Server.Do(ctx, "CONFIG", "SET", "activedefrag", "yes")
		return err
	},
}
