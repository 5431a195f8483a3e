package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

func TestFailoverWindow(t *testing.T) {
	const refusal = "connecting to 10.0.0.1:6379: connection refused"
	gone := func(err string) clusterCase {
		return newClusterCase("redis 7.0.15").upBut(oldMaster).up(oldMaster, 0, 5e9).waits(oldMaster, 5e9, clusterEnd,
			err)
	}
	suspected := func(c clusterCase) clusterCase {
		return c.sample(recording.SourceServer, clusterNodes[1], "cluster_slots_pfail", 0,
			0).sample(recording.SourceServer, clusterNodes[1], "cluster_slots_pfail", 11e9, 5461)
	}
	closed := recording.ConnDetail{By: recording.Server, Reason: recording.CloseReset, Calls: 40, InFlightNs: 4e6}
	checkCluster(t, "failover-window", []clusterWant{
		{
			name: "T0: its process has ended", rec: gone(refusal).taken(11e9).grows(recording.SourceServer,
				clusterNodes[1], "errorstat_CLUSTERDOWN.count", 300), first: true,
			evidence: "its replica 10.0.0.4:6379 was seen as the master of its 5461 slots 6.05 s later",
			fix:      "--cluster call 10.0.0.4:6379 CONFIG SET cluster-require-full-coverage no",
		},
		{
			name: "T0: it is silent", rec: gone("timeout of the call").taken(11e9), first: true, doubted: true,
			against: "show whether callers with an old map still wait for it",
		},
		{
			name:  "T2: it is silent, and no caller waits for it",
			rec:   gone("timeout of the call").taken(11e9).tapped(),
			first: true, against: "why it stopped answering was not seen",
		},
		{
			name: "T1: it was stopped for longer than the other nodes wait, and no caller waits for it",
			rec:  gone("timeout of the call").taken(11e9).stopped(5e9, 20e9), first: true,
			evidence: "its process was stopped for at least 15 s", fix: "Find what stopped the process",
		},
		{
			name: "T2: connections that ended with it", rec: gone(refusal).taken(11e9).conn(oldMaster, "10.0.0.9:1",
				1e9,
				5e9+1, closed).conn(oldMaster, "10.0.0.9:2", 1e9, 5e9+2, closed), first: true,
			evidence: "2 connections of its callers ended with it (app[77])",
		},
		{
			name: "no node has taken over when the watch ends", rec: suspected(gone(refusal)), first: true,
			evidence: "no node took over its 5461 slots by then", fix: "cluster-replica-validity-factor",
		},
		{name: "slowpath alone does not reach it", rec: gone(refusal)},
		{
			name: "it is slow, and the others suspect it for a moment",
			rec:  suspected(newClusterCase("redis 7.0.15").upBut("").waits(oldMaster, 5e9, 6e9, "")),
		},
		{name: "a handover: it answers all of the time", rec: newClusterCase("redis 7.0.15").upBut("").taken(11e9)},
		{
			name: "it was stopped, and went on before the other nodes marked it as failed",
			rec: newClusterCase("redis 7.0.15").upBut(oldMaster).up(oldMaster, 0, 5e9).waits(oldMaster, 5e9, 8e9,
				"").up(oldMaster, 8e9, clusterEnd).stopped(5e9, 8e9),
		},
		{
			name: "over when the watch begins", rec: newClusterCase("redis 7.0.15").upBut(oldMaster).waits(oldMaster,
				1e9,
				clusterEnd, refusal).tellTaken(2e9), first: true,
			evidence: "the failover is over", against: "none is seen to wait for it now",
		},
		{
			name: "over when the watch begins, and no client calls it",
			rec:  newClusterCase("redis 7.0.15").upBut(oldMaster).tellTaken(2e9),
		},
	})
}

// A replica without cluster names its master in INFO.
func TestFailoverBySentinel(t *testing.T) {
	c := clusterCase{recording.New()}
	c.SetMeta(recording.MetaStart, "0")
	c.SetMeta(recording.MetaEnd, "20000000000")
	c.SetMeta(recording.MetaNodes, `["`+oldMaster+`","`+newMaster+`"]`)
	c.Snapshot(recording.Snapshot{
		TimeNs: 0, Source: recording.SourceServer, Subject: newMaster, Name: "info",
		Body: `{"role":"slave","master_host":"10.0.0.1"}`,
	})
	c.sample(recording.SourceServer, newMaster, "master_port", 0, 6379).up(newMaster, 0, clusterEnd).up(oldMaster, 0,
		5e9).waits(oldMaster, 5e9, clusterEnd, "connection refused: nothing listens")
	c.event(recording.SourceServer, newMaster, recording.KindRoleChange, 16e9, 0, map[string]string{
		"from": "slave",
		"to":   "master",
	})
	checkCluster(t, "failover-window", []clusterWant{{
		name: "Sentinel", rec: c, first: true,
		evidence: "was seen as the master of its place", fix: "Sentinel: set down-after-milliseconds to 5000",
	}})
}

// After a takeover callers no longer wait for the stopped process to go on.
func TestFrozenMasterThatWasReplaced(t *testing.T) {
	c := newClusterCase("redis 7.0.15").upBut(oldMaster).up(oldMaster, 0, 5e9).waits(oldMaster, 5e9, clusterEnd,
		"timeout of the call").taken(11e9).stopped(5e9, 20e9)
	checkCluster(t, "process-frozen", []clusterWant{{name: "replaced", rec: c}})
	c = newClusterCase("redis 7.0.15").upBut(oldMaster).up(oldMaster, 0, 5e9).waits(oldMaster, 5e9, 8e9,
		"").up(oldMaster, 8e9, clusterEnd).stopped(5e9, 8e9)
	checkCluster(t, "process-frozen", []clusterWant{{name: "not replaced", rec: c, first: true}})
}

// A master that is gone when the watch begins is not watched; its replica reports it.
func TestFailoverOfAMasterThatIsNotWatched(t *testing.T) {
	orphan := func() clusterCase {
		c := newClusterCase("redis 7.0.15").upBut(oldMaster)
		c.SetMeta(recording.MetaNodes, `["`+clusterNodes[1]+`","`+clusterNodes[2]+`","`+newMaster+`"]`)
		return c
	}
	link := func(c clusterCase, from, to int64) clusterCase {
		for at := from; at < to; at += 1e9 {
			c.sample(recording.SourceServer, newMaster, "master_link_down_since_seconds", at, float64((at-from)/1e9))
		}
		return c
	}
	checkCluster(t, "failover-window", []clusterWant{
		{
			name: "taken over in the watch", rec: link(orphan(), 1e9, 9e9).taken(9e9).grows(recording.SourceServer,
				clusterNodes[1], "errorstat_CLUSTERDOWN.count", 80), first: true,
			evidence: "its master 10.0.0.1:6379 was gone when the watch began; this node was seen as master of its " +
				"5461 slots 8 s later",
		},
		{
			name: "taken over, and no caller is known", rec: link(orphan(), 1e9, 9e9).taken(9e9),
			first: true, against: "whether clients called it meanwhile is not known",
		},
		{
			name: "not taken over yet", rec: link(orphan(), 1e9, clusterEnd), first: true,
			evidence: "no node had taken over its 5461 slots",
		},
		{name: "its link was down for a moment", rec: link(orphan(), 1e9, 3e9)},
		{name: "its link is up", rec: orphan()},
	})
}
