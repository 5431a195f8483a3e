package server

import (
	"testing"

	"slowpath/internal/house/needs"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/wire/session"
	"slowpath/internal/wire/target"
)

// TestIdentifyEnvoy: its INFO says cluster_enabled:1, and no process id; there is no cluster behind it.
func TestIdentifyEnvoy(t *testing.T) {
	needs.Real(t)
	behind := fleettest.Start(t, servers.Redis7015, fleet.Spec{})
	p := fleettest.StartProxy(t, (*fleet.Fleet).StartEnvoy, behind)
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
