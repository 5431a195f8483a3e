package scenario

import (
	"context"

	"slowpath/internal/lab/clients"
)

// throttledShardAlone has the throttled node of fanout-slowest-shard, but each call is to one node.
var throttledShardAlone = Scenario{
	ID:    "server-cfs-throttled-shard",
	Cause: "server-cfs-throttled",
	Title: "single GETs of go-redis v9 over six masters, one of which its CPU quota throttles",
	Fixes: []string{"remove-cpu-limit"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.throttledShard(ctx, 6, ClientSpec{Program: clients.GoRedis9, Options: clients.Options{
			Commands: []clients.Command{{Args: []string{"GET", "doc:{n}"}}}, Workers: 8, PoolSize: 8, Rate: 6000,
			Random: true,
		}})
	},
}
