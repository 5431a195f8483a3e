package cause_test

import (
	"strings"
	"testing"

	"slowpath/internal/diagnose/facts/caller"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

// refusing is ten seconds of a server with 1000 calls of clients, of which some were refused with an error.
func refusing(code string, users float64) edge {
	return newEdge("redis 7.0.15").kept(edgeMs/10, 0, 0).polledUntil(10e9).info(map[string]float64{
		"total_commands_processed": 1000 + 20*10 - users, "errorstat_" + code + ".count": users,
	})
}

// rejected is the server's own count of a command that it refused before it executed it.
func (e edge) rejected(command string, calls float64) edge {
	return e.info(map[string]float64{"cmdstat_" + command + ".rejected_calls": calls})
}

// failed is the server's own count of a command that failed while it was executed.
func (e edge) failed(command string, calls float64) edge {
	return e.info(map[string]float64{"cmdstat_" + command + ".failed_calls": calls})
}

// ownErrors are calls of the probe from a time on that get an error.
func (e edge) ownErrors(op, code string, fromNs int64) edge {
	for at := int64(25 * edgeMs); at < edgeEnd; at += 50 * edgeMs {
		c := recording.Call{
			Source: recording.SourceProbe, Conn: "kept", Op: op, Node: edgeNode, Slot: -1,
			IntendedNs: at, StartNs: at, EndNs: at + edgeMs/10,
		}
		if at >= fromNs {
			c.Error = code
		}
		e.Call(c)
	}
	return e
}

// tapErrors are error replies that the tap counted.
func (e edge) tapErrors(op, code string, count float64) edge {
	tapUsed(e.Recording)
	e.Sample(recording.Sample{
		TimeNs: 9e9, Source: recording.SourceTap, Subject: edgeNode,
		Name: recording.ErrorRepliesName(recording.Server, op, code), Value: count,
	})
	return e
}

func TestCallsRefused(t *testing.T) {
	clusterDown := func(e edge) edge {
		for s := range int64(11) {
			e.Snapshot(recording.Snapshot{
				TimeNs: s * 1e9, Source: recording.SourceServer, Subject: edgeNode, Name: "info",
				Body: `{"role":"master","cluster_state":"fail"}`,
			})
		}
		return e.level(recording.SourceServer, "cluster_slots_assigned", 5461)
	}
	explainEdge(t, find("calls-refused"), []edgeCase{
		{
			name: "T0: writes to a full server", rec: refusing("OOM", 300).rejected("set", 300), found: true,
			evidence: "300 calls of 1000 of its clients got OOM, 30 %", fix: "maxmemory",
		},
		{
			name: "T0: a full server on a host with memory", rec: refusing("OOM", 300).rejected("set", 300).
				level(recording.SourceServer, "used_memory", 3e6).
				level(recording.SourceServer, "total_system_memory", 8e9).
				config(map[string]string{"maxmemory": "1000000"}), found: true, fix: "CONFIG SET maxmemory 6000000",
		},
		{
			name: "T0: which commands", rec: refusing("MISCONF", 300).rejected("set", 290).rejected("incr", 10),
			found: true, evidence: "SET 290, INCR 10", fix: "rdb_last_bgsave_status",
		},
		{
			name: "T0: a permission was taken", rec: refusing("NOPERM", 200).rejected("get", 200), found: true,
			evidence: "200 calls of 1000", fix: "ACL SETUSER <the user of your application> +get",
		},
		{
			name: "T0: a permission was taken from a user who is known", rec: refusing("NOPERM", 200).
				rejected("get", 200).clientsOf(caller.Client{Addr: "10.0.0.9:1", User: "shop"}), found: true,
			fix: "ACL SETUSER shop +get",
		},
		{
			name:  "T0: slowpath is refused as well",
			rec:   refusing("CLUSTERDOWN", 0).ownErrors("GET", "CLUSTERDOWN", 2e9),
			found: true, evidence: "of slowpath's own calls got CLUSTERDOWN",
			against: "no calls of clients", fix: "--cluster fix 10.0.0.5:6379",
		},
		{
			name: "T0: the cluster is down, and nobody calls", rec: clusterDown(refusing("ERR", 0)), found: true,
			evidence: "10923 of 16384 slots have no node",
			fix:      "echo yes | redis-cli --cluster fix 10.0.0.5:6379",
		},
		{
			name:  "T0: slowpath's login does no longer work",
			rec:   refusing("NOAUTH", 0).ownErrors("GET", "NOAUTH", 5e9),
			found: true, evidence: "got NOAUTH", fix: "requirepass",
		},
		{
			name: "T2: an old server", rec: newEdge("redis 6.0.16").kept(edgeMs/10, 0, 0).
				info(map[string]float64{"total_commands_processed": 900}).tapErrors("SET", "OOM", 300), found: true,
			evidence: "it answered clients with OOM to: SET 300",
		},
		{
			name: "T2: most calls get an error", rec: refusing("WRONGTYPE", 700).failed("get", 700).
				tapErrors("GET", "WRONGTYPE", 700),
			found: true, evidence: "700 calls of 1000 of its clients got WRONGTYPE",
		},
		// A healthy application has error replies by design.
		{name: "a type is tried", rec: refusing("WRONGTYPE", 200).failed("get", 200)},
		{name: "a script is sent after its hash is unknown", rec: refusing("NOSCRIPT", 400).failed("evalsha", 400)},
		{
			name: "each script is new: EVALSHA, EVAL",
			rec:  refusing("NOSCRIPT", 600).failed("evalsha", 600).info(map[string]float64{"cmdstat_eval.calls": 600}),
		},
		{name: "a group exists already", rec: refusing("BUSYGROUP", 300).failed("xgroup|create", 300)},
		{name: "a transaction is given up", rec: refusing("EXECABORT", 300).failed("exec", 300)},
		{
			name: "each connection tries CLIENT SETINFO, which this version does not have",
			rec:  refusing("ERR", 700).info(map[string]float64{"cmdstat_client.failed_calls": 700}),
		},
		{name: "redirects of a cluster", rec: refusing("MOVED", 800).rejected("get", 800)},
		{name: "a limit by a script's own error", rec: refusing("LIMIT", 400)},
		{name: "two of many", rec: refusing("OOM", 2).rejected("set", 2)},
		{name: "an exporter lacks CONFIG GET", rec: refusing("NOPERM", 30).rejected("config|get", 30)},
		{
			name: "slowpath's own user may not GET", rec: refusing("NOPERM", 0).ownErrors("GET", "NOPERM", 0).
				info(map[string]float64{"errorstat_NOPERM.count": 200}).rejected("get", 200),
		},
		{
			name: "not enough replicas, which another cause has",
			rec:  refusing("NOREPLICAS", 300).rejected("set", 300),
		},
		{
			name: "a replica of a cluster that loads its data at its start, which another cause has",
			rec: refusing("CLUSTERDOWN", 80).ownErrors("PING", "LOADING", 2e9).
				snapshot(recording.SourceServer, "info", map[string]string{"role": "slave"}),
		},
		{name: "an old server, and no tap", rec: newEdge("redis 6.0.16").kept(edgeMs/10, 0, 0)},
	})
}

// TestFailedCallsAreNotHealthy: no verdict is healthy when calls fail, whether or not a cause is found.
func TestFailedCallsAreNotHealthy(t *testing.T) {
	for name, tt := range map[string]struct {
		rec     edge
		verdict string
		says    string
	}{
		"none fail":               {refusing("ERR", 0), verdict.Healthy, "none of"},
		"errors that are answers": {refusing("WRONGTYPE", 200), verdict.Healthy, "none of"},
		"slowpath's user may do nothing": {
			refusing("NOPERM", 0).ownErrors("GET", "NOPERM", 0), verdict.Inconclusive,
			"of slowpath's own calls (NOPERM)",
		},
		"connections fail, open ones are served": {
			refusing("ERR", 0).failing(noReplyText, 1e9, 9e9), verdict.Inconclusive,
			"of slowpath's own calls (no reply)",
		},
		"the server is gone": {
			goneAt(6e9, edgeEnd).failing(refusedText, 6.1e9, edgeEnd), verdict.Findings, "its port refused connections",
		},
	} {
		tt.rec.Index()
		d := verdict.Diagnose(tt.rec.Recording, "test")
		if d.Verdict != tt.verdict || !strings.Contains(d.Summary, tt.says) {
			t.Errorf("%s: %s: %s", name, d.Verdict, d.Summary)
		}
	}
}
