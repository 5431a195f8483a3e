package scenario

import (
	"context"
	"math/rand/v2"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// flushSync empties one database of 300 000 keys after the other. There are enough for two watches.
var flushSync = Scenario{
	ID:    "flush-sync",
	Cause: "flush-sync",
	Title: "FLUSHDB of one database of 300 000 keys after the other",
	Fixes: []string{"lazy-user-flush", "flush-async"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{Config: flushes.Config(l, nil)})
		if err != nil {
			return Scene{}, err
		}
		st, full := &Stage{Server: s}, Strength{"keys": 300_000, "databases": 30, "per_second": 1.3}
		if err := flushes.Prepare(ctx, l, st, full); err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 2000, Command: traffic.Mixed(10_000)})
		if err := flushes.On(ctx, l, st, full); err != nil {
			return Scene{}, err
		}
		return Scene{Target: s.Addr}, nil
	},
}

// flushes empties databases that were filled before.
var flushes = Fault{
	Name:    "flush-sync",
	Cause:   "flush-sync",
	Needs:   Needs{Topologies: oneServer},
	Calls:   true,
	Culprit: "cache-reset",
	Draw: func(r *rand.Rand) Strength {
		return Strength{"keys": between(r, 500, 60_000), "databases": preparedFor, "per_second": between(r, 1.7, 2.5)}
	},
	Config: func(l *Lab, _ Strength) []string {
		return append([]string{"databases 64"}, l.since(6, 2, "lazyfree-lazy-user-flush no")...)
	},
	Prepare: func(ctx context.Context, _ *Lab, st *Stage, s Strength) error {
		for db := range s.int("databases") {
			if err := evalSteps(ctx, st.Server, "redis.call('SELECT',ARGV[3]) for i=ARGV[1],ARGV[2] do "+
				"redis.call('SET','key:'..i,'v') end", s.int("keys"), itoa(1+db)); err != nil {
				return err
			}
		}
		return nil
	},
	On: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		batch := [][]string{{"SELECT", ""}, {"FLUSHDB"}}
		if !l.before(8, 0) {
			// From 8.0 FLUSHDB waits for a background thread, except in a transaction.
			batch = [][]string{{"SELECT", ""}, {"MULTI"}, {"FLUSHDB"}, {"EXEC"}}
		}
		if l.Fixed("flush-async") {
			batch = [][]string{{"SELECT", ""}, {"FLUSHDB", "ASYNC"}}
		}
		load := st.load("cache-reset", 1, s["per_second"]*float64(len(batch)), func(_ *rand.Rand, k int) []string {
			cmd := batch[k%len(batch)]
			if cmd[0] == "SELECT" {
				return []string{"SELECT", itoa(1 + int(st.used.Add(1)-1)%s.int("databases"))}
			}
			return cmd
		})
		load.Pipeline = len(batch)
		l.Load(ctx, load)
		return nil
	},
}
