package scenario

import (
	"context"
	"math/rand/v2"
	"strings"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// healthyBigValues reads and writes values of 100 kB to 1 MB, at a low rate.
var healthyBigValues = Scenario{
	ID:    "healthy-big-values",
	Cause: HealthyCause,
	Title: "GET and SET of values of 100 kB to 1 MB, 30 per second",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		sizes := []int{100_000, 200_000, 500_000, 1_000_000}
		values := make([]string, len(sizes))
		for i, n := range sizes {
			values[i] = strings.Repeat("v", n)
			if _, err := s.Do(ctx, "SET", "big:"+itoa(i), values[i]); err != nil {
				return Scene{}, err
			}
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 4, Rate: 30, Command: func(r *rand.Rand, k int) []string {
			i := r.IntN(len(sizes))
			if k%5 == 0 {
				return []string{"SET", "big:" + itoa(i), values[i]}
			}
			return []string{"GET", "big:" + itoa(i)}
		}})
		return Scene{Target: s.Addr}, nil
	},
}
