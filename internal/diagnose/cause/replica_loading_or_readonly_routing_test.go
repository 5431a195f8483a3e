package cause_test

import (
	"fmt"
	"testing"

	"slowpath/internal/recording"
)

func TestReplicaRouting(t *testing.T) {
	replica := func(server, role string) edge {
		return newEdge(server).kept(2e5, 0, 0).snapshot(recording.SourceServer, "info", map[string]string{"role": role})
	}
	loading := func(e edge) edge {
		e.level(recording.SourceServer, "loading", 1)
		e.Sample(recording.Sample{
			TimeNs: 4e9, Source: recording.SourceServer, Subject: edgeNode, Name: "loading",
			Value: 0,
		})
		return e
	}
	errors := func(e edge, code string, users, own float64) edge {
		for i := range int(own) {
			at := int64(i) * 20 * edgeMs
			e.Call(recording.Call{
				Source: recording.SourceProbe, Conn: "kept", Op: "GET", Node: edgeNode, Slot: -1,
				IntendedNs: at, StartNs: at, EndNs: at + 1e5, Error: code,
			})
		}
		return e.info(map[string]float64{"errorstat_" + code + ".count": users + own, "total_error_replies": users +
			own, "total_commands_processed": 400})
	}
	tapErrors := func(e edge, count int, err string) edge {
		tapUsed(e.Recording)
		for i := range count {
			at := int64(i) * 20 * edgeMs
			e.Call(recording.Call{
				Source: recording.SourceTap, Conn: fmt.Sprint("10.0.0.9:", i), Op: "GET",
				Client: "app[7]", Node: edgeNode, Slot: -1, IntendedNs: at, StartNs: at, EndNs: at + 1e5, Error: err,
			})
		}
		return e
	}
	// It reports nothing while it loads, and then what it refused since its start.
	restarted := func(e edge) edge {
		e.event(recording.SourceServer, recording.KindRestart, 2e9, 0, nil)
		for _, v := range []float64{500, 510} {
			e.Sample(recording.Sample{
				TimeNs: int64(v) * 15 * edgeMs, Source: recording.SourceServer, Subject: edgeNode,
				Name: "errorstat_LOADING.count", Value: v,
			})
		}
		for i := range int64(100) {
			at := 3e9 + i*40*edgeMs
			e.Call(recording.Call{
				Source: recording.SourceProbe, Conn: "kept", Op: "GET", Node: edgeNode, Slot: -1,
				IntendedNs: at, StartNs: at, EndNs: at + 1e5, Error: "LOADING",
			})
		}
		return e
	}
	// A node of a cluster that starts gives CLUSTERDOWN to commands with keys, and LOADING only to others, such as the
	// probe's PING.
	clusterDown := func(e edge, node string, calls float64) edge {
		for s := range int64(11) {
			e.Sample(recording.Sample{
				TimeNs: s * 1e9, Source: recording.SourceServer, Subject: node,
				Name: "errorstat_CLUSTERDOWN.count", Value: calls * float64(min(s, 4)) / 4,
			})
		}
		return e
	}
	two := func(e edge) edge {
		e.SetMeta(recording.MetaNodes, `["`+edgeNode+`","10.0.0.6:6379"]`)
		return e
	}
	down := func(e edge) edge { return e.info(map[string]float64{"master_link_down_since_seconds": 10}) }
	explainEdge(t, find("replica-loading-or-readonly-routing"), []edgeCase{
		{
			name: "loading", rec: errors(loading(replica("redis 7.0.15", "slave")), "LOADING", 300, 50),
			found: true, evidence: "it refused 300 calls with LOADING", fix: "readiness probe",
		},
		{name: "loading, and the callers", rec: tapErrors(errors(loading(replica("redis 7.0.15", "slave")), "LOADING",
			300, 0), 5, "error reply"), found: true, evidence: "its callers: app[7]"},
		{
			name: "loading, before 6.2", rec: tapErrors(loading(replica("redis 6.0.16", "slave")), 20, "error reply"),
			found: true, evidence: "20 calls of its clients got an error",
			against: "does not count errors by type",
		},
		{
			name: "loading after a restart", rec: restarted(replica("redis 7.0.15", "slave")), found: true,
			evidence: "it was loading its data for",
		},
		{
			name: "writes to a replica", rec: errors(replica("redis 7.0.15", "slave"), "READONLY", 300, 0),
			found: true, evidence: "it is a replica (INFO role:slave)", fix: "NewFailoverClient",
		},
		{
			name: "writes to a replica whose master is known", rec: errors(replica("redis 7.0.15", "slave"), "READONLY",
				300, 0).snapshot(recording.SourceServer, "info", map[string]string{
				"role": "slave", "master_host": "10.0.0.7",
			}).level(recording.SourceServer, "master_port", 6390), found: true, fix: "to 10.0.0.7:6390",
		},
		{
			name: "its master is gone", rec: errors(down(replica("redis 7.0.15", "slave")), "MASTERDOWN", 300, 50),
			found: true, evidence: "its link to its master was down for at least 10 s",
			fix: "replica-serve-stale-data",
		},
		{
			name: "the state was never seen", rec: errors(replica("redis 7.0.15", "slave"), "LOADING", 300, 0),
			found: true, against: "lasted less than a second",
		},
		{
			name: "loading at its start in a cluster",
			rec: clusterDown(errors(loading(two(replica("redis 7.0.15", "slave"))), "LOADING", 0, 50),
				edgeNode, 80),
			found:    true,
			evidence: "it refused 80 calls with CLUSTERDOWN and 0 with LOADING while it loaded",
			fix:      "readiness probe",
		},
		{
			name: "the cluster is down, and it loads",
			rec: clusterDown(clusterDown(errors(loading(two(replica("redis 7.0.15", "slave"))), "LOADING", 0, 50),
				edgeNode, 80), "10.0.0.6:6379", 80),
		},
		{name: "CLUSTERDOWN of a node that does not load", rec: clusterDown(two(replica("redis 7.0.15", "slave")),
			edgeNode, 80)},
		{name: "only slowpath calls it", rec: errors(loading(replica("redis 7.0.15", "slave")), "LOADING", 0, 50)},
		{name: "a few of many", rec: errors(loading(replica("redis 7.0.15", "slave")), "LOADING", 2, 0)},
		{name: "other errors of an old server", rec: tapErrors(replica("redis 6.0.16", "master"), 20, "error reply")},
		{
			name: "a command has it load", rec: errors(loading(replica("redis 7.0.15", "slave")), "LOADING", 300,
				50).event(recording.SourceServer, recording.KindSlowlog, 3e9, 5e8, recording.SlowlogDetail{
				Command: "DEBUG RELOAD", ArgCount: 2, WindowNs: 1e9,
			}),
		},
		{name: "it loads, and no client calls it", rec: loading(replica("redis 7.0.15", "slave"))},
		{name: "a replica that is read", rec: replica("redis 7.0.15",
			"slave").info(map[string]float64{"total_commands_processed": 1e5})},
	})
}
