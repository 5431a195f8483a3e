package scenario

import (
	"context"
	"math/rand/v2"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/servers"
	"slowpath/internal/lab/traffic"
)

// activeDefrag has a server that gives three quarters of its only thread to moving what is left of a heap that has lost
// three of four values. What is left of the thread is too little for its calls.
var activeDefrag = Scenario{
	ID:     "active-defrag",
	Cause:  "active-defrag",
	Title:  "Active defragmentation with 75 % of the main thread, and more calls than the rest can serve",
	Server: servers.Redis823,
	Fixes:  []string{"defrag-off"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		strength := Strength{"keys": 1_500_000, "cycle_percent": 75}
		s, err := l.Start(ctx, fleet.Spec{Config: defragmentation.Config(l, strength)})
		if err != nil {
			return Scene{}, err
		}
		stage := &Stage{Server: s}
		if err := defragmentation.Prepare(ctx, l, stage, strength); err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 100, Rate: 20_000, Command: traffic.Mixed(10_000)})
		return Scene{Target: s.Addr}, defragmentation.On(ctx, l, stage, strength)
	},
}

// defragmentation moves what is left of a heap that has lost three of four values, at a share of the main thread. One
// of the lab's servers is built with the allocator that it needs. It is told to begin with the first byte: one that has
// ended could not be switched on again.
var defragmentation = Fault{
	Name:  "active-defrag",
	Cause: "active-defrag",
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
