//go:build linux

package bench

import (
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/load/workload"
	"slowpath/internal/wire/target"
)

// TestDataThroughTwemproxy: it knows neither SCAN nor DBSIZE, and closes the connection on which they come.
func TestDataThroughTwemproxy(t *testing.T) {
	needs.Real(t, needs.RedisServer, needs.Twemproxy)
	server := redis(t)
	p := fleettest.StartProxy(t, (*fleet.Fleet).StartTwemproxy, server)
	at, err := target.Parse(p.Addr)
	if err != nil {
		t.Fatal(err)
	}
	w, err := workload.Compile(workload.Options{Commands: []string{"set"}, Keys: workload.Keys{High: 999}})
	if err != nil {
		t.Fatal(err)
	}
	d, err := OpenData(t.Context(), at, false, w)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if n, err := d.Prefill(t.Context(), w, 1, func(uint64, uint64) {}); n != 1000 || err != nil {
		t.Fatalf("%d keys written, %v", n, err)
	}
	if n, err := d.Clean(t.Context()); n != 1000 || err != nil {
		t.Errorf("%d keys removed, %v", n, err)
	}
	if left, err := server.Do(t.Context(), "DBSIZE"); left != int64(0) || err != nil {
		t.Errorf("%v keys left, %v", left, err)
	}
}
