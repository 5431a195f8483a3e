//go:build linux

package bench

import (
	"strings"
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/load/workload"
	"slowpath/internal/wire/target"
)

// TestReplay: the result says what of the log was sent, what was not, and how far its order was kept.
func TestReplay(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	log, err := workload.ReadMonitor(strings.NewReader(`1700000000.000000 [0 10.0.0.1:1] "SET" "a" "1"
1700000000.010000 [0 10.0.0.2:1] "GET" "a"
1700000000.015000 [0 10.0.0.2:1] "FLUSHALL"
1700000000.020000 [0 10.0.0.3:1] "GET" "never"
`), workload.ReplayOptions{KeyPrefix: "replay:"})
	if err != nil {
		t.Fatal(err)
	}
	i := redis(t)
	at, err := target.Parse(i.Addr)
	if err != nil {
		t.Fatal(err)
	}
	for speed, among := range map[float64]string{1: "by their times", 0: "between clients is not"} {
		o := options(t, i)
		o.Load.Target, o.Load.Workload, o.Load.Replay, o.Load.ReplaySpeed, o.Load.Connections = at, nil, log, speed, 2
		r, err := Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		p := r.Replay
		if p == nil || r.Requests != 3 || p.Requests != 3 || p.Sent != 3 || p.Clients != 3 || p.LengthNs != 20e6 ||
			p.Speed != speed || len(p.Skipped) != 1 || p.Skipped[0].Command != "FLUSHALL" {
			t.Errorf("%d requests, %+v", r.Requests, p)
		}
		if notes := strings.Join(p.Notes, "\n"); !strings.Contains(notes, among) || strings.Contains(notes,
			"--connections 3") != (speed > 0) {
			t.Errorf("speed %v: %s", speed, notes)
		}
		if open := speed > 0; open != (r.Schedule != nil) || open != (r.Settings.Loop == Open) ||
			open != (r.Settings.Arrivals == ReplayOf) {
			t.Errorf("speed %v: %+v, %+v", speed, r.Settings, r.Schedule)
		}
	}
	d, err := OpenData(t.Context(), at, false, log)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if !d.WritesKeys() {
		t.Error("it writes keys")
	}
	if n, err := d.Clean(t.Context()); n != 1 || err != nil {
		t.Errorf("%d keys removed, %v", n, err)
	}
}
