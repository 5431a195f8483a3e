package scenario

import (
	"context"
	"fmt"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/clients/programs/protocol"
	"slowpath/internal/lab/fleet"
)

// askRedirect is a resharding that was broken off: the keys of a busy slot have moved, and the slot still belongs to
// the old node.
var askRedirect = Scenario{
	ID:    "ask-redirect-during-migration",
	Cause: "ask-redirect-during-migration",
	Fixes: []string{"finish-migration"},
	Title: "go-redis reads keys of a slot whose migration is not finished: each call gets ASK",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.halfMoved(ctx, clients.GoRedis9, []clients.Command{
			{Args: []string{"GET", keyOfSlot(0, "doc:{n}")}},
			{Args: []string{"GET", "doc:{n}"}},
		}, Documents)
	},
}

// askRedirectTryAgain has half of the keys of a slot on either node: both refuse commands over two of them.
var askRedirectTryAgain = Scenario{
	ID:    "ask-redirect-during-migration-tryagain",
	Cause: "ask-redirect-during-migration",
	Fixes: []string{"finish-migration"},
	Title: "ioredis reads two keys of a slot at a time, of which one has migrated: TRYAGAIN",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.halfMoved(ctx, clients.IORedis, []clients.Command{{Args: []string{
			"MGET", keyOfSlot(0, "doc:1"),
			keyOfSlot(0, "doc:99"),
		}}, {Args: []string{"GET", "doc:{n}"}, Weight: 9}}, Documents/2)
	},
}

// halfMoved starts a cluster in which slot 0 is open and its first keys have moved, and a client.
func (l *Lab) halfMoved(ctx context.Context, library clients.Name, commands []clients.Command, moved int) (Scene,
	error,
) {
	c, err := l.Cluster(ctx, 3, 0, fleet.Spec{})
	if err != nil {
		return Scene{}, err
	}
	r, err := l.resharding(ctx, c)
	if err != nil {
		return Scene{}, err
	}
	var keys []string
	for n := range Documents {
		keys = append(keys, keyOfSlot(0, "doc:"+itoa(n)))
		if _, err := r.call(0, "SET", keys[n], "a document"); err != nil {
			return Scene{}, fmt.Errorf("filling: %w", err)
		}
	}
	if err := r.open(0, 0, 1); err != nil {
		return Scene{}, err
	}
	if err := r.migrate(0, 1, keys[:moved]...); err != nil {
		return Scene{}, err
	}
	return Scene{Target: c.Nodes[0].Addr}, l.Client(ctx, ClientSpec{
		Program: library,
		Options: clients.Options{
			Addresses: c.Addrs(), Mode: protocol.Cluster,
			Commands: commands, Keys: Documents, Workers: 10, Rate: 500,
		},
	})
}
