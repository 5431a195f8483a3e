package source

import (
	"net"
	"strings"
	"testing"
	"time"

	"slowpath/internal/house/needs"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/recording"
	"slowpath/internal/wire/target"
)

// TestPasswordOfPeers: a real server with a password names a node on this host, where somebody collects what is sent.
func TestPasswordOfPeers(t *testing.T) {
	needs.Real(t)
	s := fleettest.StartMap(t, servers.Redis7015, fleet.MapSpec{Masters: 2}, fleet.Spec{Password: "secret-of-all"})
	collector := fleettest.Collect(t, "127.77.0.2:6379") // the second node of the map
	host, port, err := net.SplitHostPort(fleettest.Outside(t, s.Addr))
	if err != nil {
		t.Fatal(err)
	}
	seed := target.Target{Network: "tcp", Host: host, Password: "secret-of-all"}
	seed = seed.WithAddr(net.JoinHostPort(host, port))
	for _, clustered := range []bool{false, true} {
		rec := recording.New()
		o := Options{
			Targets: []target.Target{seed}, NoHost: true, NoTap: true, Cluster: clustered,
			Timeout: time.Second,
		}.withDefaults()
		nodes, err := connectAll(t.Context(), o, rec)
		if err != nil || len(nodes) == 0 || nodes[0].address != seed.Addr() {
			t.Fatalf("%v, %v", nodes, err)
		}
		if got := strings.Contains(collector(), "secret-of-all"); got != clustered {
			t.Errorf("-c %v: the password was sent: %v", clustered, got)
		}
		var blind string
		for _, e := range rec.Events {
			blind += e.Subject + " " + e.Detail
		}
		if want := "127.77.0.2:6379 "; !strings.Contains(blind, want) ||
			strings.Contains(blind, "the password would be sent there") == clustered {
			t.Errorf("-c %v: %s", clustered, blind)
		}
	}
}
