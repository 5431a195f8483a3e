//go:build linux

package engine_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"slowpath/internal/clock"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/load/engine"
	"slowpath/internal/load/workload"
	"slowpath/internal/wire/target"
)

// TestReplayAgainstACluster: the requests of a log of one server go to the nodes of their slots, each client's in its
// order; what no node could execute is left out.
func TestReplayAgainstACluster(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	t.Parallel()
	c := newLab(t).cluster(t, 3, 0, fleet.Spec{})
	const requests, clients = 3000, 7
	var b strings.Builder
	line := func(i int, command string) {
		fmt.Fprintf(&b, "1700000000.%06d [0 10.0.0.1:%d] %s\n", 50*i, i%clients, command)
	}
	for i := range requests { // a client's requests go to lists on all nodes
		line(i, fmt.Sprintf(`"RPUSH" "list:%d:%d" "%d"`, i%clients, i/clients%5, i))
	}
	line(requests, `"MGET" "a" "b"`)
	line(requests, `"MULTI"`)
	line(requests, `"INCR" "a"`)
	line(requests, `"INCR" "b"`)
	line(requests, `"EXEC"`)
	log, err := workload.ReadMonitor(strings.NewReader(b.String()), workload.ReplayOptions{Cluster: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(log.Skipped) != 2 || log.Requests() != requests {
		t.Errorf("%d requests, left out: %v", log.Requests(), log.Skipped)
	}
	for name, o := range map[string]engine.Options{
		"own pace": {Connections: clients, Pipeline: 1, Threads: 2, ReplaySpeed: 1},
		"fewer":    {Connections: 2, Pipeline: 1, Threads: 1, ReplaySpeed: 5},
		"no pace":  {Connections: 4, Pipeline: 1, Threads: 2},
		"pipeline": {Connections: 4, Pipeline: 8, Threads: 2}, // per node one after the other all the same
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range c.Nodes {
				do(t, n, "FLUSHALL")
			}
			if o.Target, err = target.Parse(c.Nodes[1].Addr); err != nil {
				t.Fatal(err)
			}
			o.Replay, o.Cluster, o.Clock, o.Drain = log, true, clock.New(), patience
			sum := o.NewTally()
			o.OnTally = sum.Add
			r, err := engine.Run(until(t), o)
			if err != nil {
				t.Fatal(err)
			}
			if sum.Calls() != requests || len(sum.Errors) > 0 || len(sum.Retried) > 0 || len(sum.Nodes) != 3 ||
				r.InFlight != 0 || r.Unsent != 0 {
				t.Errorf("%d calls, errors %v, again %v, nodes %v, %+v", sum.Calls(), sum.Errors, sum.Retried,
					sum.Nodes,
					r)
			}
			for list := range clients * 5 {
				checkList(t, c, list%clients, list/clients, clients, requests)
			}
		})
	}
}

// checkList: a list holds the numbers that its client appended to it, in their order.
func checkList(t *testing.T, c *fleet.Cluster, client, list, clients, requests int) {
	t.Helper()
	var want []string
	for i := client; i < requests; i += clients {
		if i/clients%5 == list {
			want = append(want, fmt.Sprint(i))
		}
	}
	key := fmt.Sprintf("%slist:%d:%d", workload.Prefix, client, list)
	for _, n := range c.Nodes {
		if got, err := n.Do(until(t), "LRANGE", key, "0", "-1"); err == nil {
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %.100v, want %.100v", key, got, want)
			}
			return
		}
	}
	t.Errorf("no node has %s", key)
}

// TestReplayFollowsSlots: slots that went to another node after the routes were learnt cost a redirect, and each
// request is executed once.
func TestReplayFollowsSlots(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	t.Parallel()
	c := newLab(t).cluster(t, 3, 0, fleet.Spec{})
	const requests, keys = 4000, 2000
	var b strings.Builder
	for i := range requests {
		fmt.Fprintf(&b, "1700000000.%06d [0 10.0.0.1:%d] \"INCR\" \"n:%d\"\n", i*50, i%9, i%keys)
	}
	log, err := workload.ReadMonitor(strings.NewReader(b.String()), workload.ReplayOptions{Cluster: true})
	if err != nil {
		t.Fatal(err)
	}
	o := engine.Options{
		Replay: log, ReplaySpeed: 1, Cluster: true, Clock: clock.New(), Drain: patience, Connections: 3,
		Pipeline: 2, Threads: 1,
	}
	if o.Target, err = target.Parse(c.Nodes[0].Addr); err != nil {
		t.Fatal(err)
	}
	to := do(t, c.Nodes[1], "CLUSTER", "MYID").(string)
	o.Begin = func(context.Context) error {
		for slot := range 300 {
			for _, n := range []*fleet.Instance{c.Nodes[1], c.Nodes[0], c.Nodes[2]} {
				do(t, n, "CLUSTER", "SETSLOT", strconv.Itoa(slot), "NODE", to)
			}
		}
		return nil
	}
	sum := o.NewTally()
	o.OnTally = sum.Add
	r, err := engine.Run(until(t), o)
	if err != nil {
		t.Fatal(err)
	}
	var executed int64
	for _, n := range c.Nodes {
		executed += commandCalls(t, n, "incr")
	}
	if sum.Calls() != requests || executed != requests || len(sum.Errors) > 0 || sum.Retried["MOVED"] == 0 ||
		r.InFlight != 0 {
		t.Errorf("%d calls, %d executed, errors %v, again %v, %+v", sum.Calls(), executed, sum.Errors, sum.Retried, r)
	}
}
