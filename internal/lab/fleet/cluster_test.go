package fleet

import (
	"errors"
	"strings"
	"testing"

	"slowpath/internal/lab/servers"
)

func TestClusterRefuses(t *testing.T) {
	f := newFleet(t)
	for _, test := range []struct{ masters, replicas int }{{0, 1}, {1, -1}} {
		if _, err := f.StartCluster(t.Context(), servers.Binary{}, test.masters, test.replicas, Spec{}); err == nil {
			t.Errorf("%v: no error", test)
		}
	}
	for _, port := range []int{-1, 55534, 70000} { // of three nodes
		if _, err := f.StartCluster(t.Context(), servers.Binary{}, 3, 0, Spec{Port: port}); !errors.Is(err, ErrPort) ||
			!strings.Contains(err.Error(), "give a first port from 1 to 55533") {
			t.Errorf("port %d: %v", port, err)
		}
	}
}

func TestFreePorts(t *testing.T) {
	ports, err := freePorts(20)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, p := range ports {
		if seen[p] || p < portFloor || p >= portCeiling {
			t.Errorf("port %d", p)
		}
		seen[p] = true
	}
}
