//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"slowpath/internal/cli"
	"slowpath/internal/house/await"
	"slowpath/internal/house/needs"
	"slowpath/internal/load/bench"
)

// TestLabCluster: each change of a cluster is told by topology watch and seen by a load that runs meanwhile.
func TestLabCluster(t *testing.T) {
	needs.Long(t, needs.RedisServer)
	l, masters := upCluster(t, "--masters", "3", "--replicas", "1")
	pipeOut, pipeIn := io.Pipe()
	var told changes
	go told.read(pipeOut)
	errOut, errIn := io.Pipe()
	watch := l.begin(pipeIn, errIn, "topology", "watch", masters[0], "--json")
	awaitLine(t, errOut, "watching 3 masters")
	var result bytes.Buffer
	load := l.begin(&result, t.Output(), "bench", masters[1], "-c", "--rate", "1000/s", "--connections", "4",
		"--keys", "300", "--prefill", "--command", "incr", "--json", "--for", "5m")
	for end := time.Now().Add(time.Minute); ; await.Pass(20 * time.Millisecond) { // until it has keys
		out, err := exec.Command("redis-cli", "-p", portOf(masters[0]), "dbsize").Output()
		if keys, _ := strconv.Atoi(strings.TrimSpace(string(out))); err == nil && keys > 50 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("no load: %s, %v", out, err)
		}
	}
	name := []string{"--name", "life"}
	do := func(args ...string) string {
		out, _ := l.run(cli.ExitClean, append(append([]string{"lab", "cluster"}, args...), name...)...)
		return out
	}
	joined, _, _ := strings.Cut(do("add-node", "--slots", "50"), " joined as a master\nmoved 50 slots with ")
	told.await(t, "node-joined", "to", joined)
	do("reshard", "--from", masters[0], "--to", joined, "--slots", "600", "--pause", "500ms")
	told.await(t, "slot-moved", "to", joined)
	took := do("failover", masters[2])
	replica, _, _ := strings.Cut(took, " took over the slots ")
	told.await(t, "failover-ended", "to", replica)
	if out := do("del-node", joined); !strings.Contains(out, joined+" has left the cluster, and was stopped") {
		t.Errorf("%s", out)
	}
	told.await(t, "node-left", "from", joined)
	end(t, load)
	end(t, watch)
	var r bench.Result
	if err := json.Unmarshal(result.Bytes(), &r); err != nil {
		t.Fatalf("%v: %s", err, result.String())
	}
	if r.Routing == nil || r.Routing.Retried["MOVED"] == 0 || r.Routing.Retried["ASK"] == 0 ||
		r.Routing.Nodes[joined] == 0 {
		t.Errorf("%+v", r.Routing)
	}
	if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.HasPrefix(n, "Calls were sent again") }) {
		t.Errorf("%q", r.Notes)
	}
	for op, errs := range map[string]int64{"errors": r.Ops[0].Errors, "misses": r.Ops[0].Misses} {
		if errs > 0 {
			t.Errorf("%d %s: %v", errs, op, r.Errors)
		}
	}
}
