// Package fleettest starts real servers for the time of a test.
package fleettest

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/servers"
)

// Start runs a server of a version until the test ends. It skips the test if the version is not available, since a
// registry or a tool is missing. SLOWPATH_TEST_SERVERS is the directory of the servers; empty: the lab's own.
func Start(t testing.TB, name servers.Name, spec fleet.Spec) *fleet.Instance {
	t.Helper()
	return started(t, name, func(f *fleet.Fleet, bin servers.Binary) (*fleet.Instance, error) {
		return f.Start(t.Context(), bin, spec)
	})
}

// StartMap is Start for a server with the map of a cluster of which no other node runs.
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

// Among gives those of some versions that a test of the real layer runs on: not those that are compiled first, or
// differ from another one in little. In the long layer it gives all.
func Among(names ...servers.Name) []servers.Name {
	if needs.InLong() {
		return names
	}
	return slices.DeleteFunc(names, func(n servers.Name) bool { return n == servers.Redis506 || n == servers.Redis802 })
}

// started returns what start starts, and stops it at the end of the test.
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
	i, err := start(newFleet(t), bin)
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, i)
	return i
}

// StartProxy starts a proxy in front of servers until the test ends: start is (*fleet.Fleet).StartEnvoy, for example.
// It skips the test if there is no such proxy.
func StartProxy(t testing.TB, start func(*fleet.Fleet, context.Context, ...*fleet.Instance) (*fleet.Instance, error),
	to ...*fleet.Instance,
) *fleet.Instance {
	t.Helper()
	p, err := start(newFleet(t), t.Context(), to...)
	if errors.Is(err, fleet.ErrNoProxy) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	stopAtEnd(t, p)
	return p
}

func newFleet(t testing.TB) *fleet.Fleet {
	t.Helper()
	registry, err := fleet.OpenRegistry(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f, err := fleet.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func stopAtEnd(t testing.TB, s interface{ Stop(context.Context) error }) {
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
}
