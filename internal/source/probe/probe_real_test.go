package probe

import (
	"testing"

	"slowpath/internal/house/needs"

	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/recording"
	"slowpath/internal/wire/target"
)

// redis starts a real server that allows DEBUG SLEEP.
func redis(t *testing.T) *fleet.Instance {
	t.Helper()
	return fleettest.Start(t, servers.Redis7015, fleet.Spec{Config: []string{"enable-debug-command yes"}})
}

// run probes a server until during returns, and gives what was recorded.
func run(t *testing.T, o Options, during func(p *probing)) *recording.Recording {
	t.Helper()
	var err error
	if o.Target, err = target.Parse(o.Node); err != nil {
		t.Fatal(err)
	}
	return probed(t.Context(), t, o, during)
}

func TestPhasesOfFreshConnections(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	i := redis(t)
	rec := run(t, Options{Node: i.Addr, FreshRate: 50}, func(p *probing) { p.answered(5, 0) })
	for _, c := range rec.Calls {
		if c.Error == Unfinished {
			continue
		}
		if c.Error != "" || c.Conn != Fresh {
			t.Fatalf("%+v", c)
		}
		connect, at := false, c.IntendedNs
		for _, s := range rec.SegmentsOf(c.ID) {
			if s.FromNs < at || s.ToNs < s.FromNs || s.ToNs > c.EndNs {
				t.Errorf("segment %+v of %+v", s, c)
			}
			at = s.ToNs
			connect = connect || s.Culprit == "connect"
		}
		if !connect {
			t.Errorf("no connect in %+v", rec.SegmentsOf(c.ID))
		}
	}
	if len(rec.Histograms) == 0 {
		t.Error("no histograms")
	}
}
