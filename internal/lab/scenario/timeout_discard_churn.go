package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// timeoutDiscardChurn has a ReadTimeout of 10 ms, on a path of 4 ms. KEYS blocks the server a little longer, five times
// a second: each call that it delays discards its connection, waits before it retries, and then waits for a new
// connection and its handshake. With the library's default ReadTimeout the same calls would only wait for KEYS.
var timeoutDiscardChurn = Scenario{
	ID:       "timeout-discard-churn",
	Cause:    "timeout-discard-churn",
	Title:    "go-redis with ReadTimeout 10 ms, 4 ms from a server that KEYS blocks for longer, five times a second",
	Unproven: "with a longer timeout callers wait for KEYS, which is a cause of its own",
	Args:     []string{"-a", labPassword},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, addr, err := l.distantServer(ctx, fleet.Spec{Password: labPassword}, 4*time.Millisecond)
		if err != nil {
			return Scene{}, err
		}
		if err := fillUntilKeysTakes(ctx, s, 18*time.Millisecond); err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Password: labPassword, Conns: 1, Rate: 5, Command: traffic.Always("KEYS",
			"invoice:*")})
		return Scene{Target: addr}, l.Client(ctx, ClientSpec{Program: clients.GoRedis9, Options: clients.Options{
			Addresses: []string{addr}, Password: labPassword, Name: "orders", Commands: smallReads(), Keys: Documents,
			Workers: 30, PoolSize: 30, Rate: 600, Random: true,
			ReadTimeout: 10 * time.Millisecond,
		}})
	},
}

// fillUntilKeysTakes makes keys until KEYS takes that long at least, on this machine.
func fillUntilKeysTakes(ctx context.Context, s *fleet.Instance, enough time.Duration) error {
	const most, step = 2_000_000, 50_000
	for n := 0; n < most; n += step {
		const fill = "for i=ARGV[1],ARGV[2] do redis.call('SET','order:'..ARGV[3]..':'..i,'x') end"
		if err := evalSteps(ctx, s, fill, step, itoa(n)); err != nil {
			return err
		}
		least := time.Hour
		for range 5 {
			start := time.Now()
			if _, err := s.Do(ctx, "KEYS", "invoice:*"); err != nil {
				return err
			}
			least = min(least, time.Since(start))
		}
		if least >= enough {
			return nil
		}
	}
	return fmt.Errorf("KEYS of %d keys takes less than %v", most, enough)
}

// shortTimeout gives up calls that are a little late.
var shortTimeout = Fault{
	Name:   "timeout-discard-churn",
	Cause:  "timeout-discard-churn",
	Needs:  Needs{Callers: []clients.Name{clients.GoRedis8, clients.GoRedis9}, With: keysCommands.Name},
	Draw:   func(r *rand.Rand) Strength { return Strength{"read_timeout_ms": between(r, 3, 30)} },
	Caller: func(o *clients.Options, s Strength) { o.ReadTimeout = s.millis("read_timeout_ms") },
}
