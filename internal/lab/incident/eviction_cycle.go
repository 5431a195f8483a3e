package incident

import (
	"context"
	"strings"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// evictionCycle writes values of 8 MB into a server that is full of small keys: each write evicts about 50 000 of them.
var evictionCycle = Incident{
	ID:    "eviction-cycle",
	Cause: "eviction-cycle",
	Title: "writes of 8 MB values at maxmemory, which evict 50 000 small keys each",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{Config: append([]string{"maxmemory-policy allkeys-lru"},
			l.since(6, 2, "maxmemory-eviction-tenacity 100")...)})
		if err != nil {
			return Scene{}, err
		}
		if err := fillKeys(ctx, s, 4_000_000); err != nil { // a script may not write above maxmemory
			return Scene{}, err
		}
		if _, err := s.Do(ctx, "CONFIG", "SET", "maxmemory", "300mb"); err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 2000, Command: traffic.Get(10_000)})
		value := strings.Repeat("v", 8<<20)
		k := 0
		l.Every(ctx, 300*time.Millisecond, func(ctx context.Context) error {
			k++
			_, err := s.Do(ctx, "SET", "report:"+itoa(k), value)
			return err
		})
		return Scene{Target: s.Addr}, nil
	},
}
