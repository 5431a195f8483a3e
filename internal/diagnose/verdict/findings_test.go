package verdict_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/recording"
)

// throttledCluster is a cluster with calls of 1 ms; on each throttled node one of them takes 101 ms, of which
// the cgroup of that node's server was throttled for 100.
func throttledCluster(t *testing.T, nodes, throttled int) *recording.Recording {
	t.Helper()
	const ms = int64(1e6)
	r := recording.New()
	r.SetMeta(recording.MetaStart, "0")
	r.SetMeta(recording.MetaEnd, "10000000000")
	var addresses []string
	for n := range nodes {
		address := fmt.Sprintf("10.0.0.%d:6379", n+1)
		addresses = append(addresses, address)
		for i := range int64(40) {
			at, ns := i*200*ms, ms
			var state []recording.Segment
			if i == 20 && n < throttled {
				ns = 101 * ms
				state = []recording.Segment{{
					Actor: recording.Server, State: recording.Throttled, FromNs: at, ToNs: at + 100*ms,
				}}
			}
			r.Call(recording.Call{
				Source: recording.SourceProbe, Conn: "kept", Op: "PING", Node: address,
				IntendedNs: at, StartNs: at, EndNs: at + ns,
			}, state...)
		}
		cgroup := fmt.Sprintf("/redis-%d", n+1)
		r.Snapshot(recording.Snapshot{
			Source: recording.SourceHost, Subject: address, Name: "cgroup",
			Body: `{"version":1,"levels":[{"path":"` + cgroup + `","quota_us":20000,"period_us":100000}]}`,
		})
		if n < throttled {
			for name, value := range map[string]float64{"cpu.nr_periods": 100, "cpu.nr_throttled": 1} {
				for _, at := range []int64{0, 9e9} {
					r.Sample(recording.Sample{
						TimeNs: at, Source: recording.SourceHost, Subject: recording.CgroupPrefix + cgroup,
						Name: name, Value: value * float64(at) / 9e9,
					})
				}
			}
		}
	}
	list, err := json.Marshal(addresses)
	if err != nil {
		t.Fatal(err)
	}
	r.SetMeta(recording.MetaNodes, string(list))
	r.SetMeta(recording.MetaSlow, "10ms")
	r.Index()
	return r
}

// TestFaultSpreadOverNodes: a fault that explains too little at each of many nodes is found where it explains much in
// all, with the fix of more than one node, and without the evidence of every one.
func TestFaultSpreadOverNodes(t *testing.T) {
	for _, tt := range []struct{ nodes, throttled int }{{40, 40}, {40, 39}, {40, 12}, {6, 6}, {2, 2}, {1, 1}} {
		d := verdict.Diagnose(throttledCluster(t, tt.nodes, tt.throttled), "test")
		if len(d.Findings) == 0 || d.Findings[0].Cause != "server-cfs-throttled" {
			t.Errorf("%d of %d nodes throttled: %s, %+v", tt.throttled, tt.nodes, d.Verdict, d.Findings)
			continue
		}
		f := d.Findings[0]
		if f.SlowCalls != tt.throttled || f.ExcessShare < 0.95 {
			t.Errorf("%d of %d nodes throttled: %d slow calls, %.2f of the excess", tt.throttled, tt.nodes, f.SlowCalls,
				f.ExcessShare)
		}
		fix := strings.Join(f.Fix, "\n")
		for n := range min(tt.throttled, 3) {
			if cgroup := fmt.Sprintf("/redis-%d", n+1); !strings.Contains(fix+"\n", cgroup+"/") &&
				!strings.Contains(fix, cgroup+"'") {
				t.Errorf("%d of %d nodes throttled: no fix of %s in\n%s", tt.throttled, tt.nodes, cgroup, fix)
			}
		}
		if most := 30; len(f.Evidence) > most {
			t.Errorf("%d of %d nodes throttled: %d lines of evidence", tt.throttled, tt.nodes, len(f.Evidence))
		}
	}
}
