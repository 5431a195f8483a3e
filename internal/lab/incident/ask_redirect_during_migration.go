package incident

import (
	"context"
	"fmt"

	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/clients/programs/protocol"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/wire/cluster"
)

// askRedirect is a resharding that was broken off: the keys of a busy slot have gone, and the slot still belongs to the
// node that they left.
var askRedirect = Incident{
	ID:    "ask-redirect-during-migration",
	Cause: "ask-redirect-during-migration",
	Title: "a slot half moved, whose keys go-redis reads: each call is sent on",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.halfMoved(ctx, clients.GoRedis9, []clients.Command{
			{Args: []string{"GET", movedKey("{n}")}},
			{Args: []string{"GET", "doc:{n}"}},
		}, documents)
	},
}

// askRedirectTryAgain has half of the keys of a slot on either node: commands over two of them are refused by both.
var askRedirectTryAgain = Incident{
	ID:    "ask-redirect-during-migration-tryagain",
	Cause: "ask-redirect-during-migration",
	Title: "a slot half moved, of which ioredis reads two keys at a time, one on either node: TRYAGAIN",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.halfMoved(ctx, clients.IORedis, []clients.Command{{Args: []string{
			"MGET", movedKey("1"),
			movedKey("99"),
		}}, {Args: []string{"GET", "doc:{n}"}, Weight: 9}}, documents/2)
	},
}

func movedKey(n string) string { return "{" + cluster.TagForSlot(0) + "}doc:" + n }

// halfMoved starts a cluster of which slot 0 is open with the first keys of it moved, and an application.
func (l *Lab) halfMoved(ctx context.Context, who clients.Name, commands []clients.Command, gone int) (Scene, error) {
	c, err := l.startCluster(ctx, l.Server, 3, fleet.Spec{})
	if err != nil {
		return Scene{}, err
	}
	a, err := l.admin(ctx, c)
	if err != nil {
		return Scene{}, err
	}
	var keys []string
	for n := range documents {
		keys = append(keys, movedKey(itoa(n)))
		if _, err := a.ask(0, "SET", keys[n], "a document"); err != nil {
			return Scene{}, fmt.Errorf("filling: %w", err)
		}
	}
	if err := a.open(0, 0, 1); err != nil {
		return Scene{}, err
	}
	if err := a.migrate(0, 1, keys[:gone]...); err != nil {
		return Scene{}, err
	}
	return Scene{Target: c.Nodes[0].Addr}, l.Client(ctx, clientSpec{
		Program: who,
		Options: clients.Options{
			Addresses: c.Addrs(), Mode: protocol.Cluster,
			Commands: commands, Keys: documents, Workers: 10, Rate: 500,
		},
	})
}
