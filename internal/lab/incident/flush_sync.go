package incident

import (
	"context"
	"math/rand/v2"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// flushSync empties one database of 300 000 keys after the other.
var flushSync = Incident{
	ID:    "flush-sync",
	Cause: "flush-sync",
	Title: "FLUSHDB of one database of 300 000 keys after the other",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{Config: append([]string{"databases 16"},
			l.since(6, 2, "lazyfree-lazy-user-flush no")...)})
		if err != nil {
			return Scene{}, err
		}
		for db := 1; db < 13; db++ {
			if err := evalSteps(ctx, s, "redis.call('SELECT',ARGV[3]) for i=ARGV[1],ARGV[2] do "+
				"redis.call('SET','key:'..i,'v') end", 300_000, itoa(db)); err != nil {
				return Scene{}, err
			}
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 2000, Command: traffic.Mixed(10_000)})
		batch := [][]string{{"SELECT", ""}, {"FLUSHDB"}}
		if !l.before(8, 0) {
			// From 8.0 FLUSHDB waits for a background thread, except in a transaction.
			batch = [][]string{{"SELECT", ""}, {"MULTI"}, {"FLUSHDB"}, {"EXEC"}}
		}
		l.Load(ctx, traffic.Spec{
			Addr: s.Addr, Conns: 1, Pipeline: len(batch), Rate: 1.3 * float64(len(batch)),
			Command: func(_ *rand.Rand, k int) []string {
				cmd := batch[k%len(batch)]
				if cmd[0] == "SELECT" {
					return []string{"SELECT", itoa(1 + k/len(batch)%12)}
				}
				return cmd
			},
		})
		return Scene{Target: s.Addr}, nil
	},
}
