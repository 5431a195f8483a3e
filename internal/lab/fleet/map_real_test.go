package fleet

import (
	"strconv"
	"strings"
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/servers"
)

func TestMap(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	for _, name := range []servers.Name{servers.Redis6016, servers.Redis7015, servers.Valkey811} {
		t.Run(string(name), func(t *testing.T) {
			f := newFleet(t)
			i, err := f.StartMap(t.Context(), get(t, name), MapSpec{
				Masters: 40, Replicas: 1, RangesPerMaster: 6,
				MigratingSlots: 2, UncoveredSlots: 10,
			}, Spec{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := i.Stop(t.Context()); err != nil {
					t.Error(err)
				}
			}()
			nodes, info := do(t, i, "CLUSTER", "NODES"), do(t, i, "CLUSTER", "INFO")
			if got := strings.Count(nodes, "\n"); got != 80 || replicasIn(nodes) != 40 {
				t.Errorf("%d nodes, %d replicas:\n%s", got, replicasIn(nodes), nodes)
			}
			if !strings.Contains(nodes, "127.0.0.1:"+strconv.Itoa(i.Port)+"@") || !strings.Contains(nodes,
				"[1->-"+nodeID(1)+"]") {
				t.Errorf("not itself, or no open slots:\n%s", nodes)
			}
			if got := infoField(info, "cluster_slots_assigned"); got != strconv.Itoa(Slots-10) {
				t.Errorf("%s slots", got)
			}
			if name != servers.Redis6016 { // which has no such command
				if shards, err := i.Do(t.Context(), "CLUSTER", "SHARDS"); err != nil || len(shards.([]any)) != 40 {
					t.Errorf("shards: %v", err)
				}
			}
		})
	}
}
