package manyhosts

import (
	"strings"
	"testing"
)

// TestOnCluster: each table that keeps rows is replicated and has one over all shards, in which calls are by their
// trace; all else is made on all servers; and without a cluster nothing changes.
func TestOnCluster(t *testing.T) {
	kept := 0
	for _, m := range migrations() {
		for _, s := range statements(m.script) {
			if alone := onCluster(s, ""); len(alone) != 1 || alone[0] != s {
				t.Errorf("without a cluster: %q", alone)
			}
			all := onCluster(s, "prod")
			for _, one := range all {
				if first, _, _ := strings.Cut(one, "\n"); !strings.Contains(first, " ON CLUSTER 'prod'") {
					t.Errorf("not on all servers: %s", first)
				}
			}
			if !strings.Contains(s, "MergeTree") {
				if len(all) != 1 {
					t.Errorf("%q", all)
				}
				continue
			}
			kept++
			name := created.FindStringSubmatch(s)[2]
			key := "cityHash64(host)"
			if name == "call_row" {
				key = "cityHash64(trace)"
			}
			if len(all) != 2 || !strings.HasPrefix(all[0], "CREATE TABLE IF NOT EXISTS "+name+"_local ON") ||
				!strings.Contains(all[0], "MergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}'") ||
				!strings.HasPrefix(all[1], "CREATE TABLE IF NOT EXISTS "+name+" ON") ||
				!strings.HasSuffix(all[1], "Distributed('prod', currentDatabase(), "+name+"_local, "+key+")") {
				t.Errorf("%q", all)
			}
		}
	}
	if kept < 9 {
		t.Errorf("%d tables keep rows", kept)
	}
}
