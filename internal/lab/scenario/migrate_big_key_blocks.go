package scenario

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/clients/programs/protocol"
	"slowpath/internal/lab/fleet"
)

// migrateBigKeyBlocks moves a hash of 300 000 fields from one node to another and back, as a resharding would. DUMP and
// the wait for RESTORE block one node, RESTORE the other. The small keys of the client are on both.
var migrateBigKeyBlocks = Scenario{
	ID:    "migrate-big-key-blocks",
	Cause: "migrate-big-key-blocks",
	Fixes: []string{"split-big-keys"},
	Title: "a slot with a hash of 300 000 fields migrates back and forth between two masters, under go-redis",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		c, err := l.Cluster(ctx, 3, 0, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		r, err := l.resharding(ctx, c)
		if err != nil {
			return Scene{}, err
		}
		keys := []string{keyOfSlot(0, "big")}
		if l.Fixed("split-big-keys") {
			keys = partsOf(keys[0])
		}
		for _, key := range keys {
			if err := fillHash(ctx, c.Nodes[0], key, 300_000/len(keys)); err != nil {
				return Scene{}, err
			}
		}
		if err := l.Client(ctx, ClientSpec{Program: clients.GoRedis9, Options: clients.Options{
			Addresses: c.Addrs(),
			Mode:      protocol.Cluster,
			Commands:  []clients.Command{{Args: []string{"GET", "doc:{n}"}}}, Keys: Documents, Workers: 10,
			Rate: 600,
		}}); err != nil {
			return Scene{}, err
		}
		l.Every(ctx, 400*time.Millisecond, func(context.Context) error { return r.moveToOther(0, keys...) })
		return Scene{Target: c.Nodes[0].Addr}, nil
	},
}

// migrateBigKeyStandalone copies a sorted set between two servers without a cluster. Doctor watches the one that
// receives it.
var migrateBigKeyStandalone = Scenario{
	ID:    "migrate-big-key-blocks-standalone",
	Cause: "migrate-big-key-blocks",
	Fixes: []string{"split-big-keys"},
	Title: "MIGRATE of a sorted set of 200 000 members from another server to this one, every 600 ms",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		from, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		to, err := l.Start(ctx, fleet.Spec{})
		if err != nil {
			return Scene{}, err
		}
		boards := []string{"board"}
		if l.Fixed("split-big-keys") {
			boards = partsOf("board")
		}
		for _, key := range boards {
			if err := evalSteps(ctx, from, "for i=ARGV[1],ARGV[2] do redis.call('ZADD',ARGV[3],i,'player:'..i) end",
				200_000/len(boards), key); err != nil {
				return Scene{}, err
			}
		}
		if err := fillDocuments(ctx, to, Documents, 3); err != nil {
			return Scene{}, err
		}
		if err := l.Client(ctx, ClientSpec{
			Program: clients.Redigo,
			Options: clients.Options{
				Addresses: []string{to.Addr}, Commands: smallReads(), Keys: Documents, Workers: 10,
				PoolSize: 10, MaxIdle: 10, Rate: 300,
			},
		}); err != nil {
			return Scene{}, err
		}
		l.Every(ctx, 600*time.Millisecond, func(ctx context.Context) error {
			for i, key := range boards {
				if i > 0 && !pause(ctx, betweenKeys) {
					return nil
				}
				if _, err := from.Do(ctx, "MIGRATE", "127.0.0.1", strconv.Itoa(to.Port), key, "0", "20000", "COPY",
					"REPLACE"); err != nil {
					return err
				}
			}
			return nil
		})
		return Scene{Target: to.Addr}, nil
	},
}

// partsOf are the names of as many keys as a big one is split into, so that each has at most 1 000 elements.
func partsOf(key string) (parts []string) {
	for i := range 300 {
		parts = append(parts, key+":"+itoa(i))
	}
	return parts
}

// bigMigrations move a hash back and forth between two masters.
var bigMigrations = Fault{
	Name:  "migrate-big-key-blocks",
	Cause: "migrate-big-key-blocks",
	Needs: Needs{Topologies: []Topology{Clustered}},
	Calls: true,
	Draw: func(r *rand.Rand) Strength {
		return Strength{"fields": between(r, 500, 300_000), "every_ms": between(r, 300, 600)}
	},
	Prepare: func(ctx context.Context, _ *Lab, st *Stage, s Strength) error {
		return fillHash(ctx, st.Server, keyOfSlot(0, "big"), s.int("fields"))
	},
	On: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		r, err := l.resharding(ctx, st.Cluster)
		if err != nil {
			return err
		}
		l.Every(ctx, s.millis("every_ms"), func(context.Context) error {
			return r.moveToOther(0, keyOfSlot(0, "big"))
		})
		return nil
	},
}
