package views

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"slowpath/internal/house/golden"

	"slowpath/internal/report/layout"
	"slowpath/internal/source/server"
	"slowpath/internal/topology/cost"
	"slowpath/internal/topology/survey"
	slots "slowpath/internal/wire/cluster"
)

// bigCluster is what a survey of incident 002 would hold: 80 nodes of Redis 6.0, one view that differs, a node that is
// down, and Lettuce.
func bigCluster(t *testing.T) *survey.Report {
	t.Helper()
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s := &survey.Survey{Start: start, Window: 10 * time.Second}
	for k := range 80 {
		l := &survey.NodeState{Addr: address(k), ID: id(k), Server: "redis 6.0.16", Sent: map[string]int{
			"info":          12,
			"cluster|nodes": 1,
		}}
		if k == 7 {
			l.Why = "connecting to " + address(k) + ": connection refused: nothing listens on it; check that the " +
				"server runs, -h and -p"
		} else {
			m, err := slots.ParseNodes(nodesOf(k))
			if err != nil {
				t.Fatal(err)
			}
			l.HasMap, l.Source, l.Map = true, cost.Nodes, m
			l.HasInfo, l.Info = true, slots.Info{State: "ok", KnownNodes: 80, CurrentEpoch: 40}
			l.InfoFields = server.ParseInfo("redis_version:6.0.16\r\nrole:master\r\n")
			l.Begin, l.End = server.ParseInfo("used_cpu_user:10\r\ntotal_connections_received:0\r\n"),
				server.ParseInfo("used_cpu_user:13\r\ntotal_connections_received:660\r\n")
			l.Ticks = []survey.Tick{
				{
					At: start, Stats: server.ParseInfo("cmdstat_cluster:calls=0,usec=0\r\ncmdstat_info:calls=0,usec=0"),
					HasClients: true,
					Clients: server.ParseClients("id=1 addr=10.9.9.9:5000 name=lettuce#ClusterTopologyRefresh " +
						"age=0 idle=0 flags=N cmd=cluster\nid=2 addr=10.9.9.8:5000 name= age=900 idle=1 flags=N " +
						"cmd=get lib-name=go-redis lib-ver=9.7.0"),
				},
				{
					At: start.Add(10 * time.Second),
					Stats: server.ParseInfo("cmdstat_cluster:calls=660,usec=1425600\r\n" +
						"cmdstat_info:calls=661,usec=66100"),
				},
			}
		}
		s.Nodes = append(s.Nodes, l)
	}
	s.Nodes[0].Measured = []cost.Measured{{
		Command: cost.Nodes, PerCall: 2160 * time.Microsecond, Calls: 6,
		Bytes: 12_000, Alone: true,
	}, {
		Command: cost.Slots, PerCall: 900 * time.Microsecond, Calls: 6, Bytes: 29_000,
		Alone: true,
	}}
	return survey.Analyse(s, survey.Assumptions{Version: "test"})
}

func id(k int) string      { return fmt.Sprintf("%040x", k+1) }
func address(k int) string { return fmt.Sprintf("10.0.%d.%d:6379", k/40, 1+k%40) }

// nodesOf is CLUSTER NODES of one of 40 masters and 40 replicas. The third does not know that slots moved.
func nodesOf(self int) string {
	var b strings.Builder
	for k := range 80 {
		flags, primary, slots := "master", "-", ""
		if k >= 40 {
			flags, primary = "slave", id(k-40)
		} else {
			from, to := k*16384/40, (k+1)*16384/40-1
			if k == 1 && self != 2 {
				from -= 10
			}
			if k == 0 && self != 2 {
				to -= 10
			}
			slots = fmt.Sprintf(" %d-%d", from, to)
		}
		if k == self {
			flags = "myself," + flags
		}
		if k == 7 {
			flags += ",fail"
		}
		fmt.Fprintf(&b, "%s %s@16379 %s %s 0 0 %d connected%s\n", id(k), address(k), flags, primary, 1+k%40, slots)
	}
	return b.String()
}

func TestTopologyFits(t *testing.T) {
	r := bigCluster(t)
	for _, width := range []int{40, 60, 79, 80, 160, 240} {
		for _, unicode := range []bool{false, true} {
			for _, all := range []bool{false, true} {
				var b bytes.Buffer
				if err := Topology(&b, r, all, layout.Style{Width: width, Unicode: unicode}); err != nil {
					t.Fatal(err)
				}
				for line := range strings.SplitSeq(b.String(), "\n") {
					if n := layout.Width(line); n > width {
						t.Errorf("width %d: %d columns: %q", width, n, line)
					}
				}
				if rows := strings.Count(b.String(), "10.0.0."); all && rows < 40 {
					t.Errorf("all shards: %d rows", rows)
				}
			}
		}
	}
}

func TestTopologyText(t *testing.T) {
	r := bigCluster(t)
	for _, width := range []int{80, 160} {
		var b bytes.Buffer
		if err := Topology(&b, r, false, layout.Style{Width: width, Unicode: true}); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, fmt.Sprintf("topology.%d.golden", width), b.Bytes())
	}
}

func TestTopologyJSON(t *testing.T) {
	var b bytes.Buffer
	if err := TopologyJSON(&b, bigCluster(t)); err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil || doc["schema"] != survey.Schema {
		t.Fatalf("%v: %.200s", err, b.String())
	}
	if strings.Contains(b.String(), ": null") && strings.Count(b.String(), ": null") != strings.Count(b.String(),
		`"replica_share": null`) {
		t.Errorf("a list is null: %s", b.String())
	}
}
