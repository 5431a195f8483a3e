// Package fleettest starts real servers for the time of a test.
package fleettest

import (
	"context"
	"errors"
	"os"
	"testing"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/servers"
)

// Start runs a server of that version until the test ends. Where the version cannot be had, since a registry or a tool
// is missing, the test is skipped. SLOWPATH_TEST_SERVERS names the folder of the versions; empty: the lab's own.
func Start(t testing.TB, name servers.Name, spec fleet.Spec) *fleet.Instance {
	t.Helper()
	return started(t, name, func(f *fleet.Fleet, bin servers.Binary) (*fleet.Instance, error) {
		return f.Start(t.Context(), bin, spec)
	})
}

// StartMap is Start for a server that knows the map of a cluster, of which it is the only node that runs.
func StartMap(t testing.TB, name servers.Name, m fleet.MapSpec, spec fleet.Spec) *fleet.Instance {
	t.Helper()
	return started(t, name, func(f *fleet.Fleet, bin servers.Binary) (*fleet.Instance, error) {
		return f.StartMap(t.Context(), bin, m, spec)
	})
}

// StartCluster is Start for a whole cluster.
func StartCluster(t testing.TB, name servers.Name, masters, replicas int, spec fleet.Spec) *fleet.Cluster {
	t.Helper()
	return started(t, name, func(f *fleet.Fleet, bin servers.Binary) (*fleet.Cluster, error) {
		return f.StartCluster(t.Context(), bin, masters, replicas, spec)
	})
}

// started gives what start made of that version, and stops it at the end of the test.
func started[T interface{ Stop(context.Context) error }](t testing.TB, name servers.Name, start func(*fleet.Fleet,
	servers.Binary) (T, error),
) T {
	t.Helper()
	cache, err := servers.OpenCache(os.Getenv("SLOWPATH_TEST_SERVERS"))
	if err != nil {
		t.Fatal(err)
	}
	bin, err := cache.Get(t.Context(), name, t.Output())
	if errors.Is(err, servers.ErrRegistry) || errors.Is(err, servers.ErrTool) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	registry, err := fleet.OpenRegistry(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f, err := fleet.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	i, err := start(f, bin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return i
}
