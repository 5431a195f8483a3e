package fleet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/servers"
)

func TestCluster(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	for _, test := range []struct {
		name              servers.Name
		masters, replicas int
		spec              Spec
	}{
		{servers.Redis7015, 3, 1, Spec{}},
		{servers.Valkey811, 2, 1, Spec{TLS: true, Password: "x"}},
		{servers.Redis7015, 1, 0, Spec{}},
	} {
		t.Run(fmt.Sprint(test.name, test.masters), func(t *testing.T) {
			t.Parallel()
			testCluster(t, test.name, test.masters, test.replicas, test.spec)
		})
	}
}

func testCluster(t *testing.T, name servers.Name, masters, replicas int, spec Spec) {
	bin, f := get(t, name), newFleet(t)
	c, err := f.StartCluster(t.Context(), bin, masters, replicas, spec)
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
	if len(c.Addrs()) != masters*(1+replicas) {
		t.Errorf("nodes: %v", c.Addrs())
	}
	for k, n := range c.Nodes {
		info := do(t, n, "CLUSTER", "INFO")
		if infoField(info, "cluster_state") != "ok" ||
			infoField(info, "cluster_known_nodes") != strconv.Itoa(len(c.Nodes)) ||
			infoField(info, "cluster_slots_assigned") != "16384" {
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
}

// TestClusterPorts: the nodes have the ports from the first one on. A cluster of which one port, or one bus port, is
// taken does not start at all.
func TestClusterPorts(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	f, bin := newFleet(t), get(t, servers.Redis7015)
	const nodes = 4
	first := consecutive(t, nodes)
	for _, taken := range []int{first + 3, first + 2 + busOffset} {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(taken)))
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.StartCluster(t.Context(), bin, 2, 1, Spec{Port: first})
		l.Close()
		if !errors.Is(err, ErrPort) || !strings.Contains(err.Error(), strconv.Itoa(taken)+": bind: ") {
			t.Errorf("port %d: %v", taken, err)
		}
		if left, err := filepath.Glob(filepath.Join(f.Registry.dir, "*")); err != nil || len(left) > 0 {
			t.Errorf("something was started: %v, %v", left, err)
		}
	}
	c, err := f.StartCluster(t.Context(), bin, 2, 1, Spec{Port: first})
	if err != nil {
		t.Fatal(err)
	}
	for k, n := range c.Nodes {
		if n.Port != first+k || !strings.Contains(do(t, n, "CLUSTER", "INFO"), "cluster_state:ok") {
			t.Errorf("node %d: %+v", k, n.Info)
		}
	}
	if err := c.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

// consecutive finds n ports in a row which are free now, with their bus ports.
func consecutive(t *testing.T, n int) int {
	t.Helper()
	for range portTries {
		ports, err := freePorts(1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := clusterPorts(Spec{Port: ports[0]}, n); err == nil {
			return ports[0]
		}
	}
	t.Fatal("no free ports in a row")
	return 0
}

func TestClusterFailureLeavesNothing(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	f := newFleet(t)
	_, err := f.StartCluster(t.Context(), get(t, servers.Redis7015), 3, 0, Spec{Config: []string{"nonsense yes"}})
	if err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Error(err)
	}
}
