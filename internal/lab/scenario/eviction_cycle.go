package scenario

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// evictionCycle writes values of 8 MB into a server that is full of small keys: each write evicts about 50 000 of them.
var evictionCycle = Scenario{
	ID:    "eviction-cycle",
	Cause: "eviction-cycle",
	Title: "writes of 8 MB values at maxmemory, which evict 50 000 small keys each",
	Fixes: []string{"shorter-evictions"},
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
		l.writeReports(ctx, s, 300*time.Millisecond, 8<<20)
		return Scene{Target: s.Addr}, nil
	},
}

// writeReports writes big values, each into a key of its own.
func (l *Lab) writeReports(ctx context.Context, s *fleet.Instance, gap time.Duration, bytes int) {
	value := strings.Repeat("v", bytes)
	l.Every(ctx, gap, func(ctx context.Context) error {
		_, err := s.Do(ctx, "SET", fmt.Sprintf("report:%d", time.Now().UnixNano()), value)
		return err
	})
}

// bytesPerSmallKey is less than what a small key takes in any version, which is 80 to 100 bytes.
const bytesPerSmallKey = 70

// bigWrites writes big values into a server that is full of small keys.
var bigWrites = Fault{
	Name:  "eviction-cycle",
	Cause: "eviction-cycle",
	Needs: Needs{Topologies: oneServer, Alone: []Alone{maxMemory}},
	Calls: true,
	Draw: func(r *rand.Rand) Strength {
		return Strength{"value_mb": between(r, 0.05, 4), "every_ms": between(r, 300, 600)}
	},
	Config: func(l *Lab, _ Strength) []string {
		return append([]string{"maxmemory-policy allkeys-lru"}, l.since(6, 2, "maxmemory-eviction-tenacity 100")...)
	},
	Prepare: func(ctx context.Context, _ *Lab, st *Stage, s Strength) error {
		evicted := preparedFor * 2 * s["value_mb"] * (1 << 20)
		if err := fillKeys(ctx, st.Server, int(evicted/bytesPerSmallKey)); err != nil {
			return err
		}
		info, err := st.Server.Do(ctx, "INFO", "memory")
		if err != nil {
			return err
		}
		text, _ := info.(string)
		_, rest, _ := strings.Cut(text, "used_memory:")
		used, _, _ := strings.Cut(rest, "\r\n")
		_, err = st.Server.Do(ctx, "CONFIG", "SET", "maxmemory", used)
		return err
	},
	On: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		l.writeReports(ctx, st.Server, s.millis("every_ms"), int(s["value_mb"]*(1<<20)))
		return nil
	},
}
