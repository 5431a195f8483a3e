package incident

import (
	"context"
	"strconv"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/clients/programs/protocol"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/wire/cluster"
)

// migrateBigKeyBlocks moves a hash of 300 000 fields from one node to another and back, as a resharding that comes upon
// it: DUMP and the wait for RESTORE hold the one, RESTORE the other. The application's small keys are on both.
var migrateBigKeyBlocks = Incident{
	ID:    "migrate-big-key-blocks",
	Cause: "migrate-big-key-blocks",
	Title: "a slot with a hash of 300 000 fields goes back and forth between two masters, beside go-redis",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		c, err := l.startCluster(ctx, l.Server, 3, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		a, err := l.admin(ctx, c)
		if err != nil {
			return Scene{}, err
		}
		key := "{" + cluster.TagForSlot(0) + "}big"
		if err := fillHash(ctx, c.Nodes[0], key, 300_000); err != nil {
			return Scene{}, err
		}
		if err := l.Client(ctx, clientSpec{Program: clients.GoRedis9, Options: clients.Options{
			Addresses: c.Addrs(),
			Mode:      protocol.Cluster,
			Commands:  []clients.Command{{Args: []string{"GET", "doc:{n}"}}}, Keys: documents, Workers: 10,
			Rate: 600,
		}}); err != nil {
			return Scene{}, err
		}
		l.Every(ctx, 400*time.Millisecond, func(context.Context) error { return a.moveToOther(0, key) })
		return Scene{Target: c.Nodes[0].Addr}, nil
	},
}

// migrateBigKeyStandalone moves a sorted set between two servers without cluster, as one that is emptied by hand;
// doctor watches the one that takes it.
var migrateBigKeyStandalone = Incident{
	ID:    "migrate-big-key-blocks-standalone",
	Cause: "migrate-big-key-blocks",
	Title: "MIGRATE of a sorted set of 200 000 members from another server to this one, again and again",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		from, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		to, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		if err := steps(ctx, from, "for i=ARGV[1],ARGV[2] do redis.call('ZADD','board',i,'player:'..i) end",
			200_000); err != nil {
			return Scene{}, err
		}
		if err := fillDocuments(ctx, to, documents, 3); err != nil {
			return Scene{}, err
		}
		if err := l.Client(ctx, clientSpec{
			Program: clients.Redigo,
			Options: clients.Options{
				Addresses: []string{to.Addr}, Commands: smallReads(), Keys: documents, Workers: 10,
				PoolSize: 10, MaxIdle: 10, Rate: 300,
			},
		}); err != nil {
			return Scene{}, err
		}
		l.Every(ctx, 600*time.Millisecond, func(ctx context.Context) error {
			_, err := from.Do(ctx, "MIGRATE", "127.0.0.1", strconv.Itoa(to.Port), "board", "0", "20000", "COPY",
				"REPLACE")
			return err
		})
		return Scene{Target: to.Addr}, nil
	},
}
