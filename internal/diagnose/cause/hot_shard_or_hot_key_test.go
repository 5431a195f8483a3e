package cause_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"slowpath/internal/recording"
)

// load says what the nodes of a cluster did in the watch: cores of the main thread (INFO), and thousands of GETs per
// second.
func (c clusterCase) load(node string, cores, thousands float64) clusterCase {
	c.grows(recording.SourceServer, node, "used_cpu_user_main_thread", cores*20).grows(recording.SourceServer, node,
		"used_cpu_sys_main_thread", 0)
	c.grows(recording.SourceServer, node, "total_commands_processed", thousands*20e3)
	return c.grows(recording.SourceServer, node, "cmdstat_get.calls", thousands*20e3).grows(recording.SourceServer,
		node, "cmdstat_get.usec", cores*15e6)
}

// queued are the probe's calls that wait in the queue at a node.
func (c clusterCase) queued(node string) clusterCase {
	c.probe(node, 0, 1e5, "")
	for at := int64(50e6); at < clusterEnd; at += 50e6 {
		c.probe(node, at, 8e6, "")
	}
	return c
}

// slotUse is what a node counted of its slots in the watch: of 6 s of commands with keys, those of the busiest.
func (c clusterCase) slotUse(node string, busiest ...recording.SlotUse) clusterCase {
	c.Snapshot(recording.Snapshot{
		TimeNs: clusterEnd - 1e9, Source: recording.SourceServer, Subject: node, Name: recording.SnapshotSlots,
		Body: recording.Detail(recording.SlotStats{Ns: clusterEnd - 2e9, Slots: 5462, CPUUsec: 6e6, Busiest: busiest}),
	})
	return c
}

func TestHotShard(t *testing.T) {
	hot := clusterNodes[1]
	cluster := func(server string, cores ...float64) clusterCase {
		c := newClusterCase(server)
		for i, node := range clusterNodes[:3] {
			c.load(node, cores[i], cores[i]*60)
			if cores[i] > 0.9 {
				c.queued(node)
			} else {
				c.up(node, 0, clusterEnd)
			}
		}
		return c.load(newMaster, 0.02, 0.1).up(newMaster, 0, clusterEnd)
	}
	host := func(c clusterCase) clusterCase {
		for node, run := range map[string]float64{clusterNodes[0]: 0.1, hot: 0.97, clusterNodes[2]: 0.1} {
			c.grows(recording.SourceHost, node, "main.run_ns", run*20e9).grows(recording.SourceHost, node,
				"main.delay_ns", 0)
		}
		return c
	}
	uneven := cluster("redis 7.0.15", 0.1, 0.97, 0.12)
	wide := maps.Clone(evenSlots)
	wide[clusterNodes[0]], wide[hot], wide[clusterNodes[2]] = "0-999", "1000-15383", "15384-16383"
	for _, node := range clusterNodes {
		for i, s := range uneven.Snapshots {
			if s.Subject == node && s.Name == "cluster-nodes" {
				uneven.Snapshots = append(uneven.Snapshots[:i], uneven.Snapshots[i+1:]...)
				break
			}
		}
		uneven.view(node, 1e9, wide, map[string]string{newMaster: oldMaster}, "")
	}
	alone := newEdge("redis 7.0.15").kept(2*edgeMs, 0, 0).mainThread(0.97, 0).call("kept", 1, edgeMs/10)
	checkCluster(t, "hot-shard-or-hot-key", []clusterWant{
		{
			name: "T0: by INFO", rec: cluster("redis 7.0.15", 0.1, 0.97, 0.12), first: true,
			evidence: "it has 5 462 slots, the median of its peers is 5 461: it has no more keys", fix: "--hotkeys",
		},
		{
			name: "T1: by schedstat", rec: host(cluster("redis 7.0.15", 0.1, 0.97, 0.12)), first: true,
			evidence: "its main thread used 0.97 cores; the median of its 2 peers is 0.10",
		},
		{
			name: "Valkey counts by slot", rec: host(cluster("valkey 8.1.1", 0.1, 0.97, 0.12)), first: true,
			fix: "CLUSTER SLOT-STATS ORDERBY CPU-USEC",
		},
		{
			name: "the hot slot was counted", rec: cluster("valkey 9.1.2", 0.1, 0.97, 0.12).slotUse(hot,
				recording.SlotUse{Slot: 9457, CPUUsec: 55e5, Keys: 2}, recording.SlotUse{Slot: 7000, CPUUsec: 1e5}),
			first: true,
			evidence: "1 took 92 % of the time of commands with keys (CLUSTER SLOT-STATS): " +
				"9457 with 2 keys",
			fix: "Cache the keys of slot 9457 (valkey-cli -h 10.0.0.2 -p 6379 CLUSTER GETKEYSINSLOT 9457 10) in the " +
				"callers",
		},
		{
			name: "two hot slots", rec: cluster("valkey 9.1.2", 0.1, 0.97, 0.12).slotUse(hot,
				recording.SlotUse{Slot: 9457, CPUUsec: 29e5, Keys: 2}, recording.SlotUse{Slot: 7000, CPUUsec: 29e5}),
			first: true, evidence: "2 took 97 % of the time of commands with keys",
		},
		{
			name: "no slot is hot", rec: cluster("valkey 9.1.2", 0.1, 0.97, 0.12).slotUse(hot,
				recording.SlotUse{Slot: 9457, CPUUsec: 3e5, Keys: 9}),
			first: true, evidence: "it has no more keys", fix: "Move some of its busiest slots to its peers",
		},
		{
			name: "it does not count them", rec: cluster("valkey 9.1.2", 0.1, 0.97, 0.12).config(hot,
				`{"cluster-slot-stats-enabled":"no"}`),
			first: true, fix: "after CONFIG SET cluster-slot-stats-enabled yes",
		},
		{
			name: "slots of any file", rec: cluster("valkey 9.1.2", 0.1, 0.97, 0.12).slotUse(hot,
				recording.SlotUse{Slot: 99999, CPUUsec: 5e6}, recording.SlotUse{Slot: -1, CPUUsec: 5e6},
				recording.SlotUse{Slot: 1, CPUUsec: -5}, recording.SlotUse{Slot: 2, CPUUsec: 1 << 62}),
			first: true, evidence: "it has no more keys", fix: "Move some of its busiest slots to its peers",
		},
		{name: "a hot slot of a node with time to spare", rec: cluster("valkey 9.1.2", 0.1, 0.5, 0.1).slotUse(hot,
			recording.SlotUse{Slot: 9457, CPUUsec: 59e5, Keys: 2})},
		{name: "more slots, and so more keys", rec: uneven, first: true, evidence: "it has 14 384 slots, the median " +
			"of its peers is 1 000: so it has that many more keys", fix: "--cluster rebalance"},
		{name: "all are busy", rec: cluster("redis 7.0.15", 0.95, 0.97, 0.95)},
		{name: "it does more, and has time to spare", rec: cluster("redis 7.0.15", 0.1, 0.5, 0.1)},
		{name: "no cluster", rec: clusterCase(alone)},
	})
	if _, all := cluster("redis 7.0.15", 0.1, 0.97, 0.12).find("main-thread-saturated"); len(all) < 2 ||
		all[1].Because != "hot-shard-or-hot-key" {
		t.Errorf("%+v", all)
	}
	even, _ := cluster("valkey 9.1.2", 0.1, 0.97, 0.12).slotUse(hot, recording.SlotUse{Slot: 1, CPUUsec: 3e5}).find(
		"hot-shard-or-hot-key")
	if !strings.Contains(fmt.Sprint(even.Against), "no slot is hot: the 1 busiest of its") {
		t.Error(even.Against)
	}
	checkCluster(t, "main-thread-saturated", []clusterWant{{name: "all are busy", rec: cluster("redis 7.0.15", 0.95,
		0.97, 0.95), first: true}})
}
