package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

func TestStaleTopologySilentMaster(t *testing.T) {
	silent := func() clusterCase {
		return newClusterCase("redis 7.0.15").upBut(oldMaster).up(oldMaster, 0, 5e9).waits(oldMaster, 5e9, clusterEnd,
			"timeout of the call").taken(11e9)
	}
	app := recording.Unread{PID: 77, Comm: "java", Connections: 2}
	own := func(c clusterCase) clusterCase {
		c.Snapshot(recording.Snapshot{
			TimeNs: 0, Source: recording.SourceHost, Subject: "process:5", Name: "process",
			Body: `{"self":true}`,
		})
		return c
	}
	gaveUp := recording.ConnDetail{By: recording.Client, IdleNs: 2e9}
	vain := func(c clusterCase, from int64) clusterCase {
		for i := range int64(4) {
			c.conn(oldMaster, "10.0.0.9:"+string(rune('1'+i)), from+i*1e9, from+i*1e9+2e9, gaveUp)
		}
		return c
	}
	checkCluster(t, "stale-topology-silent-master", []clusterWant{
		{
			name: "T1: requests are unread", rec: silent().stopped(5e9, 20e9).unread(6e9, app), first: true,
			evidence: "14 s, summed over connections (java[77])", fix: "kill -CONT 9",
		},
		{
			name: "T1: of another host", rec: silent().unread(6e9, recording.Unread{Host: "10.0.0.9", Connections: 1}),
			first: true, evidence: "(10.0.0.9)", fix: "Lettuce: ClusterTopologyRefreshOptions",
		},
		{
			name: "T1: since before the watch", rec: newClusterCase("redis 7.0.15").upBut(oldMaster).waits(oldMaster,
				1e9,
				clusterEnd, "timeout of the call").tellTaken(2e9).unread(1e9, app), first: true,
			evidence: "since before the watch",
		},
		{name: "T1: only slowpath waits", rec: own(silent().unread(6e9, recording.Unread{
			PID: 5, Comm: "slowpath",
			Connections: 2,
		}))},
		{name: "T1: only its replica waits", rec: silent().unread(6e9, recording.Unread{
			PID: 8, Comm: "redis-server",
			Connections: 1,
		})},
		{name: "T1: they left when another node had its slots", rec: silent().unread(6e9, app).unread(12e9)},
		{name: "T2: they tried before another node had its slots", rec: vain(silent(), 6e9)},
		{name: "T1: no node has taken over", rec: newClusterCase("redis 7.0.15").upBut(oldMaster).up(oldMaster, 0,
			5e9).waits(oldMaster, 5e9, clusterEnd, "timeout of the call").stopped(5e9, 20e9).unread(6e9, app)},
		{name: "T2: they are refused, and know", rec: vain(newClusterCase("redis 7.0.15").upBut(oldMaster).up(oldMaster,
			0, 5e9).waits(oldMaster, 5e9, clusterEnd, "connection refused").taken(11e9), 14e9)},
		{name: "T0: the clients of a silent server are not seen", rec: silent()},
	})
	f, _ := vain(silent(), 14e9).find("stale-topology-silent-master") // beside the failover, which took longer
	holds(t, "T2: connections that are opened and never answered", texts(f.Evidence),
		"4 connections opened to it after that never got a reply; 4 of them were given up")
}

// The part of the wait before a node took over is the failover's, and comes second.
func TestFailoverBesideStaleTopology(t *testing.T) {
	c := newClusterCase("redis 7.0.15").upBut(oldMaster).up(oldMaster, 0, 5e9).waits(oldMaster, 5e9, clusterEnd,
		"timeout of the call").taken(11e9).unread(6e9, recording.Unread{PID: 77, Comm: "java", Connections: 1})
	c.conn(oldMaster, "10.0.0.9:1", 1e9, 0, recording.ConnDetail{})
	if _, all := c.find("failover-window"); len(all) == 0 || all[0].Cause != "stale-topology-silent-master" {
		t.Errorf("%+v", all)
	}
}
