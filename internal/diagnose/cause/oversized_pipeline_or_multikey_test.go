package cause_test

import (
	"testing"

	"slowpath/internal/recording"
)

func TestOversizedPipeline(t *testing.T) {
	// Six times the server works for 60 ms in reads of one connection, and others wait.
	held := func(reads int64, d recording.ActivityDetail) edge {
		e := newPath()
		for i := range int64(6) {
			at := (i + 1) * 1500 * edgeMs
			d.Client, d.Process = pathClient, "batch[9]"
			for k := range reads {
				e.worked(at+k*60/reads*edgeMs, 60/reads, d)
			}
			for k := range int64(3) {
				e.seen(pathOther, "GET", at+k*10*edgeMs, 5, part{"server", "busy", 60 - k*10, "GET from " + pathClient},
					part{"server", "exec", 1, ""})
			}
		}
		return e
	}
	explainEdge(t, find("oversized-pipeline-or-multikey"), []edgeCase{
		{
			name: "a pipeline of 20000", rec: held(30, recording.ActivityDetail{
				Op: "GET", Calls: 680, Args: 2,
				Bytes: 20474,
			}),
			found: true, evidence: "the largest of 20400 commands (GET)",
			fix: "pipelines of 10.0.0.7:51000 (batch[9]) in pieces",
		},
		{
			name: "MGET of 30000", rec: held(1, recording.ActivityDetail{
				Op: "MGET", Calls: 1, Args: 30001,
				Bytes: 18000,
			}),
			found: true, evidence: "MGET with 30000 keys", fix: "some 100 keys",
		},
		{name: "a slow command", rec: held(1, recording.ActivityDetail{Op: "KEYS", Calls: 1, Args: 2, Bytes: 24})},
		{name: "pipelines of 64", rec: held(30, recording.ActivityDetail{Op: "GET", Calls: 64, Args: 2, Bytes: 2000})},
		{name: "a script with many arguments is a script", rec: held(1, recording.ActivityDetail{
			Op: "EVAL", Calls: 1,
			Args: 5000, Bytes: 18000,
		})},
		{name: "a transaction", rec: held(30, recording.ActivityDetail{
			Op: "MULTI", Calls: 680, Args: 2,
			Bytes: 20474,
		})},
		{name: "big values in full reads", rec: held(30, recording.ActivityDetail{
			Op: "SET", Calls: 1, Args: 3,
			Bytes: 16384,
		})},
		{name: "no call waited", rec: newPath().worked(1000*edgeMs, 10, recording.ActivityDetail{
			Op: "GET", Calls: 5000,
			Args: 2, Bytes: 20000, Client: pathClient,
		})},
	})
}

// Without the tap the server's records tell of commands with many keys; nothing of it is claimed by another
// cause.
func TestOversizedMultikeyByRecords(t *testing.T) {
	checkLoop(t, "oversized-pipeline-or-multikey", []loopWant{
		{"T1 by SLOWLOG", newLoopCase().busy().logged("DEL", 100_000, 1e6), true, false},
		{"T0 by SLOWLOG", newLoopCase().logged("MGET", 30_001, 1e5), true, false},
		{"by the kernel", newLoopCase().worked(recording.ActivityDetail{Op: "MGET", Args: 30_001}), true, false},
		{"a thousand fields of big values are bytes", newLoopCase().busy().logged("HSET", 2001, 200<<20), false, false},
		{"some keys", newLoopCase().busy().logged("MGET", 101, 1000), false, false},
		{"arguments that are no keys", newLoopCase().busy().logged("BITFIELD", 8002, 1e5), false, false},
		{"inside of a script", newLoopCase().busy().logged("EVAL", 3, 40).logged("DEL", 5001, 1e5), false, false},
		{
			"a throttled server", newLoopCase().hosted(recording.KindThrottled, "").logged("MGET", 30_001, 1e5), false,
			false,
		},
	})
	for name, r := range map[string]loopCase{
		"by SLOWLOG": newLoopCase().busy().logged("DEL", 100_000, 1e6),
		"by the kernel": newLoopCase().worked(recording.ActivityDetail{Op: "MGET", Args: 30_001}).logged("MGET", 30_001,
			1e5),
		"bytes": newLoopCase().worked(recording.ActivityDetail{Op: "HSET", Args: 2001, Bytes: 200 << 20}),
	} {
		t.Run("claimed once "+name, func(t *testing.T) {
			if d := r.diagnose(); len(d.Findings) != 1 || d.Findings[0].ExcessShare < 0.8 {
				t.Errorf("findings %v", names(d))
			}
		})
	}
}
