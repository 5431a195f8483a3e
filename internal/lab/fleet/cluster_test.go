package fleet

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"slowpath/internal/lab/servers"
)

func TestCluster(t *testing.T) {
	for _, test := range []struct {
		name              servers.Name
		masters, replicas int
		spec              Spec
	}{
		{servers.Redis506, 3, 1, Spec{}},
		{servers.Redis7015, 3, 1, Spec{}},
		{servers.Valkey811, 2, 1, Spec{TLS: true, Password: "x"}},
		{servers.Redis802, 1, 0, Spec{}},
	} {
		t.Run(string(test.name), func(t *testing.T) {
			t.Parallel()
			bin := get(t, test.name)
			f := newFleet(t)
			c, err := f.StartCluster(t.Context(), bin, test.masters, test.replicas, test.spec)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := c.Stop(context.Background()); err != nil {
					t.Error(err)
				}
				for _, n := range c.Nodes {
					checkGone(t, n.Info)
				}
			}()
			if len(c.Addrs()) != test.masters*(1+test.replicas) {
				t.Errorf("nodes: %v", c.Addrs())
			}
			for k, n := range c.Nodes {
				info := do(t, n, "CLUSTER", "INFO")
				if infoField(info, "cluster_state") != "ok" || infoField(info,
					"cluster_known_nodes") != strconv.Itoa(len(c.Nodes)) || infoField(info,
					"cluster_slots_assigned") != "16384" {
					t.Errorf("%s: %s", n.Addr, info)
				}
				want := "role:master"
				if k >= c.Masters {
					want = "role:slave"
				}
				if got := do(t, n, "INFO", "replication"); !strings.Contains(got, want) {
					t.Errorf("%s is not %s:\n%s", n.Addr, want, got)
				}
			}
		})
	}
}

func TestClusterRefuses(t *testing.T) {
	f := newFleet(t)
	for _, test := range []struct{ masters, replicas, port int }{{0, 1, 0}, {1, -1, 0}, {3, 0, 7000}} {
		if _, err := f.StartCluster(t.Context(), servers.Binary{}, test.masters, test.replicas,
			Spec{Port: test.port}); err == nil {
			t.Errorf("%v: no error", test)
		}
	}
}

func TestClusterFailureLeavesNothing(t *testing.T) {
	f := newFleet(t)
	_, err := f.StartCluster(t.Context(), get(t, servers.Redis7015), 3, 0, Spec{Config: []string{"nonsense yes"}})
	if err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Error(err)
	}
}

func TestFreePorts(t *testing.T) {
	ports, err := freePorts(20)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, p := range ports {
		if seen[p] || p >= portCeiling {
			t.Errorf("port %d", p)
		}
		seen[p] = true
	}
}
