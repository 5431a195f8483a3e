package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// luaLong runs a script of about 50 ms three times a second.
var luaLong = Scenario{
	ID:    "lua-or-multi-long",
	Cause: "lua-or-multi-long",
	Title: "a Lua script that counts to 3 million and reads 5000 keys",
	Fixes: []string{"in-steps"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 2000, Command: traffic.Mixed(10_000)})
		steps := 1
		if l.Fixed("in-steps") {
			steps = 50 // of 100 keys each
		}
		const keys = 5000
		script := counting(3_000_000/steps) + " for i=ARGV[1],ARGV[2] do redis.call('GET','lab:'..i) end return n"
		part := func(_ *rand.Rand, k int) []string {
			from := 1 + k%steps*(keys/steps)
			return []string{"EVAL", script, "0", itoa(from), itoa(from + keys/steps - 1)}
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 1, Rate: float64(3 * steps), Command: part})
		return Scene{Target: s.Addr}, nil
	},
}

// multiLong runs transactions of 40 000 short commands. None of them is in SLOWLOG.
var multiLong = Scenario{
	ID:    "lua-or-multi-long-exec",
	Cause: "lua-or-multi-long",
	Title: "MULTI … EXEC of 40 000 short commands",
	Fixes: []string{"smaller-batches"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 2000, Command: traffic.Mixed(10_000)})
		n := 40_000
		if l.Fixed("smaller-batches") {
			n = 100
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 1, Pipeline: n + 2, Rate: 80_004, Command: transaction(n)})
		return Scene{Target: s.Addr}, nil
	},
}

// transaction gives MULTI, n hash writes and EXEC, over and over.
func transaction(n int) func(*rand.Rand, int) []string {
	return func(r *rand.Rand, k int) []string {
		switch k % (n + 2) {
		case 0:
			return []string{"MULTI"}
		case n + 1:
			return []string{"EXEC"}
		default:
			return []string{"HSET", "order:" + itoa(r.IntN(1000)), "field", itoa(k)}
		}
	}
}

// counting is a script that counts.
func counting(n int) string { return fmt.Sprintf("local n=0 for i=1,%d do n=n+i%%7 end", n) }

// longScripts runs scripts; 3 million steps take about 50 ms.
var longScripts = Fault{
	Name:    "lua-or-multi-long",
	Cause:   "lua-or-multi-long",
	Calls:   true,
	Culprit: "pricing",
	Draw: func(r *rand.Rand) Strength {
		return Strength{"steps": between(r, 5_000, 8_000_000), "per_second": between(r, 2, 6)}
	},
	On: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		script := counting(s.int("steps")) + " return n"
		l.Load(ctx, st.load("pricing", 1, s["per_second"], traffic.Always("EVAL", script, "0")))
		return nil
	},
}
