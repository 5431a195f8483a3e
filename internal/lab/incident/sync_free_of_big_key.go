package incident

import (
	"context"
	"time"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// bigHashes is how many hashes are freed, one per bigHashGap: enough for the time that doctor needs to start and
// watches.
const (
	bigHashes     = 8
	bigHashGap    = 1200 * time.Millisecond
	bigHashFields = 700_000
)

// syncFree deletes big hashes with a DEL that frees them in the main thread.
var syncFree = Incident{
	ID:    "sync-free-of-big-key",
	Cause: "sync-free-of-big-key",
	Title: "DEL of one hash of 700 000 fields after the other",
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
		h := 0
		l.Every(ctx, bigHashGap, func(ctx context.Context) error {
			_, err := s.Do(ctx, "DEL", "cart:"+itoa(h))
			h++
			return err
		})
		return Scene{Target: s.Addr}, nil
	},
}

// syncFreeByExpiry lets big hashes expire one after the other: no command frees them.
var syncFreeByExpiry = Incident{
	ID:    "sync-free-of-big-key-expire",
	Cause: "sync-free-of-big-key",
	Title: "expiry of one hash of 700 000 fields after the other",
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
