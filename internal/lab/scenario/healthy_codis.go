package scenario

import "context"

// healthyCodis has the load of codisSlotMigrationStall, and no migration.
var healthyCodis = Scenario{
	ID:    "healthy-codis",
	Cause: HealthyCause,
	Title: "the load of codis-slot-migration-stall, through a stand-in for Codis whose slots stay",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		servers, _, err := l.codis(ctx)
		if err != nil {
			return Scene{}, err
		}
		return Scene{Target: servers[0].Addr}, nil
	},
}
