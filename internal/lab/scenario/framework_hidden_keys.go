package scenario

import (
	"context"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/traffic"
)

// frameworkHiddenKeys has a Spring application that clears a cache now and then, as @CacheEvict(allEntries = true)
// does. Spring Data Redis sends KEYS for that, which visits all keys of the database, also those of others.
var frameworkHiddenKeys = Scenario{
	ID:    "framework-hidden-keys",
	Cause: "framework-hidden-keys",
	Title: "a Spring application that clears a small cache in a database of 500 000 keys",
	Fixes: []string{"own-database"},
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		s, err := l.Start(ctx, fleet.Spec{Config: []string{"slowlog-log-slower-than 10000"}})
		if err != nil {
			return Scene{}, err
		}
		if err := evalSteps(ctx, s, "for i=ARGV[1],ARGV[2] do redis.call('SET','order:'..i,'x') end",
			500_000); err != nil {
			return Scene{}, err
		}
		l.Load(ctx, traffic.Spec{Addr: s.Addr, Conns: 10, Rate: 500, Command: traffic.Mixed(10_000)})
		db := 0
		if l.Fixed("own-database") {
			db = 1
		}
		return Scene{Target: s.Addr}, l.Client(ctx, ClientSpec{Program: clients.SpringCache, Options: clients.Options{
			Addresses: []string{s.Addr}, DB: db, Keys: Documents, Workers: 8, PoolSize: 8, Rate: 200, Random: true,
			Commands: []clients.Command{
				{Args: []string{"GET", "prices:{n}"}, Weight: 150},
				{Args: []string{"SET", "prices:{n}", "12.50"}, Weight: 48},
				{Args: []string{"DEL", "prices"}, Weight: 2},
			},
		}})
	},
}
