package scenario

import (
	"context"
	"strings"

	"slowpath/internal/lab/clients"
)

// hotKey reads two keys of one node as fast as it can serve them, and few others.
var hotKey = Scenario{
	ID:       "hot-shard-or-hot-key",
	Cause:    "hot-shard-or-hot-key",
	Title:    "100 rueidis callers that intersect the same two sets, in a cluster of three masters",
	Unproven: "its callers call as fast as they can, and keep two CPUs saturated wherever the keys are",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.hotShard(ctx, clients.Rueidis, 100, []clients.Command{
			{Args: []string{"SINTER", "{hot}online", "{hot}friends"}, Weight: 9}, {Args: []string{"GET", "doc:{n}"}},
		})
	},
}

// hotTag spreads its calls over many keys that share one hash tag.
var hotTag = Scenario{
	ID:    "hot-shard-or-hot-key-tag",
	Cause: "hot-shard-or-hot-key",
	Title: "100 go-redis callers whose keys share one hash tag, in a cluster of three masters",
	Make: func(ctx context.Context, l *Lab) (Scene, error) {
		return l.hotShard(ctx, clients.GoRedis9, 100, []clients.Command{
			{Args: []string{"BITCOUNT", "{hot}days:{n}"}, Weight: 9}, {Args: []string{"GET", "doc:{n}"}},
		})
	},
}

// hotShard starts callers without pauses, in a cluster in which the keys with the tag {hot} are on one of three
// masters.
func (l *Lab) hotShard(ctx context.Context, library clients.Name, workers int, mix []clients.Command) (Scene, error) {
	c, err := l.cacheCluster(ctx, noFailover)
	if err != nil {
		return Scene{}, err
	}
	tag, err := tagOf(ctx, c.Nodes[1])
	if err != nil {
		return Scene{}, err
	}
	const fill = "for j=1,600 do redis.call('SADD',KEYS[1],'player:'..j) redis.call('SADD',KEYS[2],'player:'..j+590) " +
		"end for i=0,49 do redis.call('SET',KEYS[3]..i,string.rep('U',500000)) end"
	if _, err := c.Nodes[1].Do(ctx, "EVAL", fill, "3", tag+"online", tag+"friends", tag+"days:"); err != nil {
		return Scene{}, err
	}
	for _, m := range mix {
		for k, arg := range m.Args {
			m.Args[k] = strings.Replace(arg, "{hot}", tag, 1)
		}
	}
	return Scene{Target: c.Nodes[0].Addr}, l.Client(ctx, ClientSpec{Program: library, Options: clients.Options{
		Addresses: c.Addrs(), Mode: "cluster", Commands: mix, Keys: 50, Workers: workers, PoolSize: workers,
	}})
}

// hotNode intersects sets of one of three masters all the time.
var hotNode = Fault{
	Name:    "hot-shard-or-hot-key",
	Cause:   "hot-shard-or-hot-key",
	Also:    []string{"main-thread-saturated"}, // of that node
	Needs:   Needs{Topologies: []Topology{Clustered}},
	Calls:   true,
	Culprit: "ranking",
	Draw:    drawIntersections,
	Prepare: func(ctx context.Context, _ *Lab, st *Stage, s Strength) error {
		return fillSets(ctx, st.Server, keyOfSlot(0, ""), s.int("members"))
	},
	On: func(ctx context.Context, l *Lab, st *Stage, s Strength) error {
		l.Load(ctx, st.load("ranking", s.int("connections"), 0, intersect(keyOfSlot(0, ""))))
		return nil
	},
}
