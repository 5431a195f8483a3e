package scenario

import (
	"context"
	"math/rand/v2"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// bigHashes is how many hashes are freed, one per bigHashGap: enough for the time that doctor needs to start and watch
// twice.
const (
	bigHashes     = 20
	bigHashGap    = 1200 * time.Millisecond
	bigHashFields = 700_000
)

// syncFree deletes big hashes with a DEL that frees them in the main thread.
var syncFree = Scenario{
	ID:    "sync-free-of-big-key",
	Cause: "sync-free-of-big-key",
	Title: "DEL of one hash of 700 000 fields after the other",
	Fixes: []string{"lazy-user-del", "unlink"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{Config: l.since(6, 0, "lazyfree-lazy-user-del no")})
		if err != nil {
			return Scene{}, err
		}
		for h := range bigHashes {
			if err := fillHash(ctx, s, "cart:"+itoa(h), bigHashFields); err != nil {
				return Scene{}, err
			}
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 2000, Command: traffic.Mixed(10_000)})
		h, remove := 0, "DEL"
		if l.Fixed("unlink") {
			remove = "UNLINK"
		}
		l.Every(ctx, bigHashGap, func(ctx context.Context) error {
			_, err := s.Do(ctx, remove, "cart:"+itoa(h))
			h++
			return err
		})
		return Scene{Target: s.Addr}, nil
	},
}

// syncFreeByExpiry lets big hashes expire one after the other: no command frees them.
var syncFreeByExpiry = Scenario{
	ID:    "sync-free-of-big-key-expire",
	Cause: "sync-free-of-big-key",
	Title: "expiry of one hash of 700 000 fields after the other",
	Fixes: []string{"lazy-expire"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{Config: []string{"lazyfree-lazy-expire no"}})
		if err != nil {
			return Scene{}, err
		}
		for h := range bigHashes {
			if err := fillHash(ctx, s, "session:"+itoa(h), bigHashFields); err != nil {
				return Scene{}, err
			}
		}
		for h := range bigHashes {
			if _, err := s.Do(ctx, "PEXPIRE", "session:"+itoa(h),
				itoa(int(time.Second.Milliseconds())+h*int(bigHashGap.Milliseconds()))); err != nil {
				return Scene{}, err
			}
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 2000, Command: traffic.Mixed(10_000)})
		return Scene{Target: s.Addr}, nil
	},
}

// bigFrees deletes hashes that were filled before, or lets them expire.
var bigFrees = Fault{
	Name:  "sync-free-of-big-key",
	Cause: "sync-free-of-big-key",
	Needs: Needs{Topologies: oneServer},
	Calls: true,
	Draw: func(r *rand.Rand) Strength {
		return Strength{"fields": between(r, 1_000, 100_000), "by_expiry": float64(r.IntN(2))}
	},
	Config: func(l *Lab, _ Strength) []string {
		return append(l.since(6, 0, "lazyfree-lazy-user-del no"), "lazyfree-lazy-expire no")
	},
	Prepare: func(ctx context.Context, _ *Lab, st *Stage, s Strength) error {
		for h := range preparedFor {
			if err := fillHash(ctx, st.Server, "cart:"+itoa(h), s.int("fields")); err != nil {
				return err
			}
		}
		return nil
	},
	On: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		l.Every(ctx, 500*time.Millisecond, func(ctx context.Context) error {
			free := []string{"DEL", "cart:" + itoa(int(st.used.Add(1)-1))}
			if s["by_expiry"] > 0 {
				free = []string{"PEXPIRE", free[1], "5"}
			}
			_, err := st.Server.Do(ctx, free...)
			return err
		})
		return nil
	},
}
