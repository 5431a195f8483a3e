//go:build linux

package engine_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/load/engine"
	"slowpath/internal/wire/cluster"
)

func TestClusterIsRouted(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	t.Parallel()
	l := newLab(t)
	c := l.cluster(t, 3, 0, fleet.Spec{})
	const calls = 10_000
	for name, o := range map[string]engine.Options{
		"closed": {Connections: 5, Pipeline: 4, Threads: 2},
		"batch":  {Connections: 5, Pipeline: 4, Threads: 2, Batch: true},
		"one":    {Connections: 1, Pipeline: 1, Threads: 1},
		"open": {Connections: 5, Pipeline: 4, Threads: 2, Schedule: []engine.Stretch{{
			Lasts: time.Minute,
			From:  20_000, To: 20_000,
		}}},
		"narrow": {Connections: 1, Pipeline: 1, Threads: 1, Schedule: []engine.Stretch{{
			Lasts: time.Minute, From: 1e6,
			To: 1e6,
		}}},
		// there are none: the masters serve
		"replicas": {Connections: 5, Pipeline: 4, Threads: 1, ReadFrom: engine.Replica},
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range c.Nodes {
				do(t, n, "CONFIG", "RESETSTAT")
			}
			o.Cluster, o.Requests = true, calls
			sum := startLoad(t, o, c.Nodes[1].Addr, "set", 100_000).wait(t)
			if sum.Calls() != calls || len(sum.Errors) > 0 || len(sum.Retried) > 0 {
				t.Errorf("%d calls of %d, errors %v, again %v", sum.Calls(), calls, sum.Errors, sum.Retried)
			}
			for _, n := range c.Nodes {
				if served := commandCalls(t, n, "set"); served == 0 || served != sum.Nodes[n.Addr] {
					t.Errorf("%s served %d calls, counted are %d", n.Addr, served, sum.Nodes[n.Addr])
				}
			}
		})
	}
}

// commandCalls is how often a server executed a command; those that it sent elsewhere are not in it.
func commandCalls(t *testing.T, i *fleet.Instance, command string) int64 {
	t.Helper()
	text, _ := do(t, i, "INFO", "commandstats").(string)
	for line := range strings.Lines(text) {
		if fields, ok := strings.CutPrefix(line, "cmdstat_"+command+":calls="); ok {
			number, _, _ := strings.Cut(fields, ",")
			n, err := strconv.ParseInt(number, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	return 0
}

// TestSlotsMoveToANewNode adds a node to a cluster under load and moves slots to it, key by key: calls meet MOVED and
// ASK, and all are answered, each by exactly one execution.
func TestSlotsMoveToANewNode(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	t.Parallel()
	l := newLab(t)
	c := l.cluster(t, 3, 0, fleet.Spec{})
	added := l.server(t, fleet.Spec{Config: []string{"cluster-enabled yes", "cluster-config-file nodes.conf"}})
	host, port, _ := strings.Cut(c.Nodes[0].Addr, ":")
	do(t, added, "CLUSTER", "MEET", host, port)
	await.Until(t, "a cluster of four", func() bool {
		for _, n := range append([]*fleet.Instance{added}, c.Nodes...) {
			text, _ := do(t, n, "CLUSTER", "NODES").(string)
			state, _ := do(t, n, "CLUSTER", "INFO").(string)
			if strings.Count(text, "connected") != 4 || strings.Contains(text, "handshake") || !strings.Contains(state,
				"cluster_state:ok") {
				return false
			}
		}
		return true
	})
	for _, n := range append([]*fleet.Instance{added}, c.Nodes...) {
		do(t, n, "CONFIG", "RESETSTAT")
	}
	u := startLoad(t, engine.Options{
		Cluster: true, Connections: 8, Pipeline: 4, Threads: 2,
		Schedule: []engine.Stretch{{Lasts: time.Hour, From: 5000, To: 5000}}, // which leaves the CPU to those that move
	}, c.Nodes[2].Addr, "set", 2000)
	from := c.Nodes[0]
	fromID, addedID := do(t, from, "CLUSTER", "MYID").(string), do(t, added, "CLUSTER", "MYID").(string)
	for slot := 0; slot < 200; slot++ {
		number := strconv.Itoa(slot)
		do(t, added, "CLUSTER", "SETSLOT", number, "IMPORTING", fromID)
		do(t, from, "CLUSTER", "SETSLOT", number, "MIGRATING", addedID)
		moveKeys(t, from, added, number)
		do(t, added, "CLUSTER", "SETSLOT", number, "NODE", addedID)
		do(t, from, "CLUSTER", "SETSLOT", number, "NODE", addedID)
	}
	await.Until(t, "calls to the new node", func() bool {
		return u.seen(func(sum *engine.Tally) bool { return sum.Nodes[added.Addr] > 0 && sum.Retried["MOVED"] > 0 })
	})
	sum := u.stop(t)
	t.Logf("calls %v, again %v", sum.Nodes, sum.Retried)
	if len(sum.Errors) > 0 || sum.Failed > 0 {
		t.Errorf("errors %v, failed %d", sum.Errors, sum.Failed)
	}
	for _, n := range append([]*fleet.Instance{added}, c.Nodes...) {
		if served := commandCalls(t, n, "set"); served != sum.Nodes[n.Addr] {
			t.Errorf("%s executed %d calls, counted are %d", n.Addr, served, sum.Nodes[n.Addr])
		}
	}
}

// moveKeys moves the keys of a slot.
func moveKeys(t *testing.T, from, to *fleet.Instance, slot string) {
	t.Helper()
	host, port, _ := strings.Cut(to.Addr, ":")
	for {
		keys, _ := do(t, from, "CLUSTER", "GETKEYSINSLOT", slot, "100").([]any)
		if len(keys) == 0 {
			return
		}
		args := []string{"MIGRATE", host, port, "", "0", "5000", "REPLACE", "KEYS"}
		for _, k := range keys {
			args = append(args, k.(string))
		}
		do(t, from, args...)
	}
}

// TestAskIsFollowed leaves a slot half moved: its keys are at the new node, but it is not yet the new node's.
func TestAskIsFollowed(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	t.Parallel()
	l := newLab(t)
	c := l.cluster(t, 2, 0, fleet.Spec{})
	from, to := c.Nodes[0], c.Nodes[1]
	fromID, toID := do(t, from, "CLUSTER", "MYID").(string), do(t, to, "CLUSTER", "MYID").(string)
	for slot := range 100 {
		number := strconv.Itoa(slot)
		do(t, to, "CLUSTER", "SETSLOT", number, "IMPORTING", fromID)
		do(t, from, "CLUSTER", "SETSLOT", number, "MIGRATING", toID)
	}
	for name, o := range map[string]engine.Options{
		"closed": {Connections: 3, Pipeline: 4, Threads: 1},
		"open": {Connections: 3, Pipeline: 1, Threads: 1, Schedule: []engine.Stretch{{
			Lasts: time.Minute,
			From:  20_000, To: 20_000,
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range c.Nodes {
				do(t, n, "CONFIG", "RESETSTAT")
			}
			o.Cluster, o.Requests = true, 20_000
			sum := startLoad(t, o, from.Addr, "set", 50_000).wait(t)
			if sum.Retried["ASK"] == 0 || sum.Retried["MOVED"] > 0 || len(sum.Errors) > 0 || sum.Calls() != o.Requests {
				t.Errorf("%d calls, again %v, errors %v", sum.Calls(), sum.Retried, sum.Errors)
			}
			if served := commandCalls(t, from, "set") + commandCalls(t, to, "set"); served != o.Requests {
				t.Errorf("%d calls were executed, %d sent", served, o.Requests)
			}
		})
	}
}

// TestKeysOfOneRequest: commands of several keys and blocks go to one slot, while it moves too.
func TestKeysOfOneRequest(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	t.Parallel()
	l := newLab(t)
	c := l.cluster(t, 2, 0, fleet.Spec{})
	from, to := c.Nodes[0], c.Nodes[1]
	const keys = 1000
	for _, command := range []string{"mset", "mget", "MULTI; SET key:{key} {value}; GET key:{same}; EXEC"} {
		o := engine.Options{Cluster: true, Connections: 4, Pipeline: 4, Threads: 2, Requests: 4000}
		if sum := startLoad(t, o, from.Addr, command, keys).wait(t); sum.Calls() != o.Requests || len(sum.Errors) > 0 ||
			len(sum.Retried) > 0 {
			t.Errorf("%s: %d calls, errors %v, again %v", command, sum.Calls(), sum.Errors, sum.Retried)
		}
	}
	moving := halfMove(t, from, to)
	// What a request wants of a slot of which some keys are gone is refused until the slot has moved.
	block := startLoad(t, engine.Options{Cluster: true, Connections: 4, Pipeline: 4, Threads: 1}, from.Addr,
		"MULTI; SET key:{key} {value}; GET key:{same}; EXEC", keys)
	several := startLoad(t, engine.Options{
		Cluster: true, Connections: 4, Pipeline: 4, Threads: 1,
		Schedule: []engine.Stretch{{Lasts: time.Hour, From: 1000, To: 1000}},
	}, from.Addr, "mset", keys)
	await.Until(t, "TRYAGAIN and ASK", func() bool {
		return several.seen(func(sum *engine.Tally) bool { return sum.Retried["TRYAGAIN"] > 0 }) &&
			block.seen(func(sum *engine.Tally) bool { return sum.Retried["ASK"] > 0 })
	})
	toID := do(t, to, "CLUSTER", "MYID").(string)
	for _, slot := range moving {
		moveKeys(t, from, to, slot)
		do(t, to, "CLUSTER", "SETSLOT", slot, "NODE", toID)
		do(t, from, "CLUSTER", "SETSLOT", slot, "NODE", toID)
	}
	for _, u := range []*under{several, block} {
		sum := u.stop(t)
		t.Logf("calls %v, again %v", sum.Nodes, sum.Retried)
		if len(sum.Errors) > 0 || sum.Failed > 0 || u.result.InFlight > 0 {
			t.Errorf("errors %v, failed %d, in flight %d", sum.Errors, sum.Failed, u.result.InFlight)
		}
	}
}

// halfMove begins to move the slots of a node that have keys, and moves one key of each. It gives the slots.
func halfMove(t *testing.T, from, to *fleet.Instance) (slots []string) {
	t.Helper()
	fromID, toID := do(t, from, "CLUSTER", "MYID").(string), do(t, to, "CLUSTER", "MYID").(string)
	host, port, _ := strings.Cut(to.Addr, ":")
	first := map[string]string{}
	for _, k := range do(t, from, "KEYS", "*").([]any) {
		first[strconv.Itoa(int(cluster.Slot([]byte(k.(string)))))] = k.(string)
	}
	for slot, key := range first {
		do(t, to, "CLUSTER", "SETSLOT", slot, "IMPORTING", fromID)
		do(t, from, "CLUSTER", "SETSLOT", slot, "MIGRATING", toID)
		do(t, from, "MIGRATE", host, port, key, "0", "5000")
	}
	return slices.Collect(maps.Keys(first))
}

// TestMasterFails kills a master under load. Its slots go to its replica, and so does the load.
func TestMasterFails(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	t.Parallel()
	l := newLab(t)
	c := l.cluster(t, 3, 1, fleet.Spec{Config: []string{"cluster-node-timeout 1000"}})
	for _, test := range []struct {
		name   string
		o      engine.Options
		master int
	}{
		{"open", engine.Options{Connections: 6, Pipeline: 2, Threads: 2, Schedule: []engine.Stretch{{
			Lasts: time.Hour,
			From:  3000, To: 3000,
		}}}, 0},
		{"closed", engine.Options{Connections: 3, Pipeline: 2, Threads: 2}, 1},
	} {
		if test.name == "closed" && !needs.InLong() {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			failing, replica := c.Nodes[test.master], c.Nodes[c.Masters+test.master]
			test.o.Cluster = true
			u := startLoad(t, test.o, c.Nodes[2].Addr, "set", 100_000)
			await.Until(t, "calls to the master", func() bool {
				return u.seen(func(sum *engine.Tally) bool { return sum.Nodes[failing.Addr] > 0 })
			})
			if err := failing.Kill(until(t)); err != nil {
				t.Fatal(err)
			}
			await.Until(t, "calls to its replica", func() bool {
				return u.seen(func(sum *engine.Tally) bool { return sum.Nodes[replica.Addr] > 0 })
			})
			sum := u.stop(t)
			t.Logf("calls %v, again %v, failed %d, errors %v", sum.Nodes, sum.Retried, sum.Failed, sum.Errors)
			if sum.Lost == 0 || u.result.InFlight > 0 {
				t.Errorf("%d connections lost, %d calls in flight", sum.Lost, u.result.InFlight)
			}
			if err := failing.Restart(until(t)); err != nil { // a replica from now on
				t.Fatal(err)
			}
			await.Until(t, "a healthy cluster", func() bool {
				return slices.IndexFunc(c.Nodes, func(n *fleet.Instance) bool {
					text, _ := do(t, n, "CLUSTER", "NODES").(string)
					return strings.Contains(text, "fail") || !strings.Contains(do(t, n, "CLUSTER", "INFO").(string),
						"cluster_state:ok")
				}) < 0
			})
		})
	}
}

// pingsSoon makes a master replicate something soon: a ping, by default each 10 s.
var pingsSoon = fleet.Spec{Config: []string{"repl-ping-replica-period 1"}}

// awaitReplicas waits until a node of a cluster names so many replicas of each master: CLUSTER SLOTS leaves them out
// before something was replicated (isReplicaAvailable in Redis' cluster.c).
func awaitReplicas(t *testing.T, n *fleet.Instance, replicas int) {
	t.Helper()
	await.Until(t, "all replicas in CLUSTER SLOTS", func() bool {
		shards, _ := do(t, n, "CLUSTER", "SLOTS").([]any)
		return len(shards) > 0 && slices.IndexFunc(shards, func(s any) bool { return len(s.([]any)) != 3+replicas }) < 0
	})
}

func TestReadsFromReplicas(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	t.Parallel()
	l := newLab(t)
	c := l.cluster(t, 2, 2, pingsSoon)
	awaitReplicas(t, c.Nodes[0], 2)
	single, err := l.StartReplicated(until(t), l.bin, 2, pingsSoon)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range single {
		stopAfter(t, i.Stop)
	}
	open := []engine.Stretch{{Lasts: time.Minute, From: 20_000, To: 20_000}}
	for _, test := range []struct {
		name     string
		seed     string
		cluster  bool
		readFrom string
		command  string
		schedule []engine.Stretch
		want     []string
	}{
		{"cluster replica", c.Nodes[0].Addr, true, engine.Replica, "get", nil, c.Addrs()[2:]},
		{"cluster any", c.Nodes[0].Addr, true, engine.Any, "get", nil, c.Addrs()},
		{"cluster any, open", c.Nodes[0].Addr, true, engine.Any, "get", open, c.Addrs()},
		{"cluster, writes", c.Nodes[0].Addr, true, engine.Any, "set", nil, c.Addrs()[:2]},
		{"cluster replica, several keys", c.Nodes[0].Addr, true, engine.Replica, "mget", nil, c.Addrs()[2:]},
		{"cluster, reads that write", c.Nodes[0].Addr, true, engine.Replica, "getset", nil, c.Addrs()[:2]},
		{"replicas of one", single[0].Addr, false, engine.Replica, "get", nil, []string{
			single[1].Addr,
			single[2].Addr,
		}},
		{"seed is a replica", single[1].Addr, false, engine.Any, "get", nil, []string{
			single[0].Addr, single[1].Addr,
			single[2].Addr,
		}},
		{"writes, seed is a replica", single[1].Addr, false, engine.Replica, "set", nil, []string{single[0].Addr}},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := engine.Options{
				Cluster: test.cluster, ReadFrom: test.readFrom, Connections: 4, Pipeline: 2, Threads: 2,
				Requests: 10_000, Schedule: test.schedule,
			}
			sum := startLoad(t, o, test.seed, test.command, 10_000).wait(t)
			if sum.Calls() != o.Requests || len(sum.Errors) > 0 || len(sum.Retried) > 0 {
				t.Errorf("%d calls, errors %v, again %v", sum.Calls(), sum.Errors, sum.Retried)
			}
			slices.Sort(test.want)
			if got := slices.Sorted(maps.Keys(sum.Nodes)); !slices.Equal(got, test.want) {
				t.Errorf("calls went to %v, not to %v", got, test.want)
			}
		})
	}
}
