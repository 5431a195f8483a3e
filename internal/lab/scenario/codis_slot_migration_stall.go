package scenario

import (
	"context"
	"time"

	"slowpath/internal/lab/codis"
)

// codisSlotMigrationStall moves half of the slots of a Codis (the lab's stand-in) from one server to the other and
// back, as a rebalance would. A call for a key of the slots that has not moved yet waits for its migration, and all
// calls behind it, since a proxy has one connection to each server; while the big key moves, so does everybody.
var codisSlotMigrationStall = Scenario{
	ID:    "codis-slot-migration-stall",
	Cause: "codis-slot-migration-stall",
	Fixes: []string{"split-big-keys"},
	Title: "a stand-in for Codis moves slots under load, one key at a time, one a hash of 300 000 fields",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		servers, proxy, err := l.codis(ctx)
		if err != nil {
			return Scene{}, err
		}
		turn := 0
		l.Every(ctx, 800*time.Millisecond, func(ctx context.Context) error {
			turn++
			_, err := codis.Migrate(ctx, proxy.Addr, lowerSlots, servers[turn%2].Addr)
			return err
		})
		return Scene{Target: servers[0].Addr}, nil
	},
}
