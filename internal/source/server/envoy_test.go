package server

import (
	"context"
	"errors"
	"testing"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

// TestIdentifyEnvoy: its INFO says cluster_enabled:1, and no process id; there is no cluster behind it.
func TestIdentifyEnvoy(t *testing.T) {
	behind := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	registry, err := fleet.OpenRegistry(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f, err := fleet.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.StartEnvoy(t.Context(), behind)
	if errors.Is(err, fleet.ErrNoProxy) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop(context.Background()) })
	to, err := target.Parse(p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := session.Open(t.Context(), to, "slowpath")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	id, err := Identify(t.Context(), s)
	if err != nil || id.Server != "redis 7.0.15" || id.ClusterEnabled || id.Mode != "standalone" ||
		!id.Merged() {
		t.Errorf("%+v, %v", id, err)
	}
}
