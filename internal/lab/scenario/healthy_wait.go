package scenario

import "context"

// healthyWait waits for the replica after each order, which has nothing else to do.
var healthyWait = Scenario{
	ID:    "healthy-wait",
	Cause: HealthyCause,
	Title: "orders that are written with WAIT, and a replica that acknowledges at once",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.orders(ctx, false)
	},
}
