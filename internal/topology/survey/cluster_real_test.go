package survey

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/wire/target"
)

// survey surveys a cluster from one of its nodes.
func survey(t *testing.T, i *fleet.Instance, window time.Duration) *Report {
	t.Helper()
	s, err := Options{Target: targetOf(t, i), Window: window, Timeout: 10 * time.Second}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return Analyse(s, Assumptions{Version: "test"})
}

func targetOf(t *testing.T, i *fleet.Instance) target.Target {
	t.Helper()
	to, err := target.Parse(i.Addr)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func do(t *testing.T, i *fleet.Instance, args ...string) string {
	t.Helper()
	reply, err := i.Do(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(reply)
}

// until surveys until holds is true, and fails with the last report.
func until(t *testing.T, i *fleet.Instance, what string, holds func(*Report) bool) *Report {
	t.Helper()
	var r *Report
	await.UntilOr(t, func() bool { r = survey(t, i, 0); return holds(r) },
		func() string { return fmt.Sprintf("%s: %+v", what, r.Findings) })
	return r
}

// TestCluster goes through what can be wrong with a map, on real clusters.
func TestCluster(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	names := []servers.Name{servers.Redis7015}
	if needs.InLong() {
		names = append(names, servers.Redis6016, servers.Valkey811)
	}
	for _, name := range names {
		t.Run(string(name), func(t *testing.T) {
			t.Parallel()
			c := fleettest.StartCluster(t, name, 3, 1, fleet.Spec{Config: []string{
				"cluster-node-timeout 2000", "repl-ping-replica-period 1",
			}})
			t.Run("healthy", func(t *testing.T) { testHealthy(t, c) })
			t.Run("open slots", func(t *testing.T) { testOpenSlots(t, c) })
			if name != servers.Valkey811 { // from 7.2 on a node tells the others to forget, too
				t.Run("a member forgotten", func(t *testing.T) { testForgotten(t, c) })
			}
			t.Run("a replica killed", func(t *testing.T) { testKilled(t, c) })
			t.Run("slots uncovered", func(t *testing.T) { testUncovered(t, c) })
		})
	}
}

func testHealthy(t *testing.T, c *fleet.Cluster) {
	r := until(t, c.Nodes[0], "a cluster of which all nodes hold the same",
		func(r *Report) bool { return r.Verdict == Healthy && len(r.Disagreements) == 0 })
	if r.Map.Size.Nodes != 6 || r.Map.Size.Masters != 3 || r.Map.Replicas != 3 || r.Map.SlotsCovered != 16384 ||
		r.Map.HeldBy != 6 || r.Map.RangesMax != 1 || len(r.Shards) != 3 {
		t.Errorf("%+v", r.Map)
	}
	for _, sh := range r.Shards {
		if len(sh.Replicas) != 1 || sh.Replicas[0].LagBytes == nil || sh.Replicas[0].LagNs == nil ||
			sh.Replicas[0].Server == "" {
			t.Errorf("shard %+v", sh)
		}
	}
	if r.Model == nil || r.Model.MeasuredNs <= 0 || !r.Model.Alone || r.Model.Formula == "" {
		t.Errorf("model %+v", r.Model)
	}
	if r.Cost.Commands["cluster|shards"] != 0 || r.Cost.PerNode > 250 || r.Cost.ServerTimeNs <= 0 {
		t.Errorf("cost %+v", r.Cost)
	}
}

func testOpenSlots(t *testing.T, c *fleet.Cluster) {
	from, to := c.Nodes[0], c.Nodes[1]
	fromID, toID := do(t, from, "CLUSTER", "MYID"), do(t, to, "CLUSTER", "MYID")
	do(t, from, "CLUSTER", "SETSLOT", "7", "MIGRATING", toID)
	r := survey(t, c.Nodes[2], 0)
	if !r.has("half-open-slots") || len(r.Moving) != 1 || r.Moving[0].Taker || !r.Moving[0].Source {
		t.Errorf("one end only: %+v %+v", r.Moving, r.Findings)
	}
	do(t, to, "CLUSTER", "SETSLOT", "7", "IMPORTING", fromID)
	r = survey(t, c.Nodes[2], 0)
	if !r.has("open-slots") || r.has("half-open-slots") || len(r.Moving) != 1 || r.Moving[0] != (Moving{
		Slots: "7",
		Count: 1, From: from.Addr, To: to.Addr, Source: true, Taker: true,
	}) {
		t.Errorf("both ends: %+v %+v", r.Moving, r.Findings)
	}
	do(t, from, "CLUSTER", "SETSLOT", "7", "STABLE")
	do(t, to, "CLUSTER", "SETSLOT", "7", "STABLE")
}

// testForgotten has one node forget another for a minute: the others know it.
func testForgotten(t *testing.T, c *fleet.Cluster) {
	forgetful, gone := c.Nodes[1], c.Nodes[3]
	do(t, forgetful, "CLUSTER", "FORGET", do(t, gone, "CLUSTER", "MYID"))
	r := until(t, forgetful, "the view without "+gone.Addr, func(r *Report) bool { return r.has("views-disagree") })
	if !slices.ContainsFunc(r.Disagreements, func(d Disagreement) bool {
		return d.Kind == "member" && strings.Contains(d.What, gone.Addr) && slices.Equal(d.By, []string{forgetful.Addr})
	}) {
		t.Errorf("%+v", r.Disagreements)
	}
	// The node that the target does not know is queried all the same, since others list it.
	if !slices.ContainsFunc(r.Views, func(v View) bool { return v.Address == gone.Addr && v.Why == "" }) {
		t.Errorf("%s was not queried: %+v", gone.Addr, r.Views)
	}
}

func testKilled(t *testing.T, c *fleet.Cluster) {
	dead := c.Nodes[5]
	if err := dead.Kill(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := survey(t, c.Nodes[0], 0)
	if !r.has("no-answer") && !r.has("failed-nodes") {
		t.Errorf("at once: %+v", r.Findings)
	}
	r = until(t, c.Nodes[0], "the end of "+dead.Addr, func(r *Report) bool { return r.has("failed-nodes") })
	if i := slices.IndexFunc(r.Views, func(v View) bool { return v.Address == dead.Addr }); i < 0 ||
		!strings.Contains(r.Views[i].Why, "refused") {
		t.Errorf("%+v", r.Views)
	}
	if r.Map.Answered != 5 || r.Map.LinksDown == 0 {
		t.Errorf("%+v", r.Map)
	}
}

func testUncovered(t *testing.T, c *fleet.Cluster) {
	var alive []*fleet.Instance
	for _, n := range c.Nodes {
		if n.Running() {
			alive = append(alive, n)
		}
	}
	// The owner first: otherwise it tells the others that it has them.
	for _, n := range alive {
		do(t, n, "CLUSTER", "DELSLOTS", "100", "101", "102")
	}
	r := until(t, c.Nodes[2], "uncovered slots", func(r *Report) bool {
		return r.has("uncovered-slots") &&
			r.has("cluster-state-fail")
	})
	if !slices.Equal(r.Uncovered, []string{"100-102"}) || r.Map.SlotsCovered != 16384-3 {
		t.Errorf("%v, %+v", r.Uncovered, r.Map)
	}
}

// TestRefreshers counts a client that asks for the map on a connection of its own, on old and new versions.
func TestRefreshers(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	for _, name := range []servers.Name{servers.Redis6016, servers.Redis7015, servers.Valkey811} {
		t.Run(string(name), func(t *testing.T) {
			t.Parallel()
			i := fleettest.StartMap(t, name, fleet.MapSpec{Masters: 40, Replicas: 1, RangesPerMaster: 6}, fleet.Spec{})
			ctx, cancel := context.WithCancel(t.Context())
			asked := make(chan error, 1)
			go func() {
				for ctx.Err() == nil {
					if _, err := i.Do(ctx, "CLUSTER", "NODES"); err != nil && ctx.Err() == nil {
						asked <- err
						return
					}
				}
				asked <- nil
			}()
			r := survey(t, i, 2*time.Second)
			cancel()
			if err := <-asked; err != nil {
				t.Fatal(err)
			}
			checkRefreshes(t, r, name)
		})
	}
}

func checkRefreshes(t *testing.T, r *Report, name servers.Name) {
	t.Helper()
	want := "cluster|nodes"
	if name == servers.Redis6016 {
		want = "cluster"
	}
	c := r.Refreshes
	if !c.Counted || len(c.Commands) != 1 || c.Commands[0].Command != want || c.Commands[0].PerCallNs <= 0 ||
		c.Share <= 0 || !c.Fresh || c.LettuceLike {
		t.Errorf("refreshes %+v", c)
	}
	if r.Map.Size.Nodes != 80 || len(r.Views) != 80 || !r.has("no-answer") {
		t.Errorf("map %+v, %d views", r.Map, len(r.Views))
	}
	ids := []string{}
	for _, w := range r.Options {
		ids = append(ids, w.ID)
		if w.Masters < 0 || w.Saves < 0 || w.Saves > 1 || w.ID == "replicas-only" && (!w.Possible || w.Masters != 0) {
			t.Errorf("%+v", w)
		}
	}
	if !slices.Equal(ids, []string{
		"now", "upgrade", "cached-slots", "replicas-only", "longer-period", "seeds-only",
		"event-driven",
	}) {
		t.Errorf("options %v", ids)
	}
	// On 6.0 the upgrade saves most; on the others it is the same command.
	if up := r.Options[1]; up.Possible != (name == servers.Redis6016) || up.Possible && up.Saves < 0.5 {
		t.Errorf("upgrade %+v", up)
	}
}
