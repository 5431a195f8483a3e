package survey

import (
	"cmp"
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/fleet"
	"slowpath/internal/lab/fleettest"
	"slowpath/internal/lab/servers"
	"slowpath/internal/wire/resp"
)

// TestPeriodsOfRealConnections: of two connections that ask for the map, one twice as often as the other, each has the
// period that it kept itself.
func TestPeriodsOfRealConnections(t *testing.T) {
	needs.Long(t, needs.RedisServer)
	c := fleettest.StartCluster(t, servers.Redis7015, 3, 0, fleet.Spec{})
	ctx, stop := context.WithCancel(t.Context())
	kept := make([]time.Duration, 2)
	var wg sync.WaitGroup
	for i, period := range []time.Duration{time.Second, 2 * time.Second} {
		conn, err := net.Dial("tcp", c.Nodes[i].Addr)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() { kept[i] = askEvery(ctx, t, conn, period) })
	}
	s, err := Options{Target: targetOf(t, c.Nodes[0]), Window: 8 * time.Second, Timeout: 10 * time.Second}.Run(ctx)
	stop()
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	got := Analyse(s, Assumptions{}).Refreshers
	slices.SortFunc(got, func(a, b Refresher) int { return cmp.Compare(a.PeriodNs, b.PeriodNs) })
	if len(got) != 2 || got[0].Callers != 1 || got[1].Callers != 1 {
		t.Fatalf("%+v", got)
	}
	for i, r := range got {
		if d := time.Duration(r.PeriodNs); d < kept[i]*3/4 || d > kept[i]*4/3 {
			t.Errorf("a period of %v, and it was %v: %+v", d, kept[i], r)
		}
	}
}

// askEvery asks for the map until the context ends, and returns the mean time between two requests.
func askEvery(ctx context.Context, t *testing.T, conn net.Conn, period time.Duration) time.Duration {
	defer conn.Close()
	in, begin, asked := resp.NewReader(conn, resp.DefaultLimits), time.Now(), 0
	for tick := time.NewTicker(period); ; asked++ {
		if _, err := conn.Write(resp.AppendCommand(nil, "CLUSTER", "SLOTS")); err != nil {
			t.Error(err)
		}
		if _, err := in.Read(); err != nil {
			t.Error(err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return time.Since(begin) / time.Duration(asked+1)
		}
	}
}
