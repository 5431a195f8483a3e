package workload

import (
	"fmt"
	"strings"
	"testing"

	"slowpath/internal/house/needs"
	"slowpath/internal/lab/servers"
)

// TestReplayCleanup: what a replay wrote goes, by SCAN or key by key; what others wrote stays, and with the keys of
// users all.
func TestReplayCleanup(t *testing.T) {
	needs.Real(t, needs.RedisServer)
	i := start(t, servers.Redis7015)
	c := dial(t, i)
	var log strings.Builder
	for n := range 1200 {
		fmt.Fprintf(&log, "1700000000.%06d [0 10.0.0.1:1] \"SET\" \"k*%d\" \"v\"\n", n, n)
	}
	log.WriteString("1700000001.000000 [0 10.0.0.1:1] \"MULTI\"\n1700000001.000000 [0 10.0.0.1:1] \"MSET\" \"x\" " +
		"\"1\" \"y\" \"2\"\n1700000001.000000 [0 10.0.0.1:1] \"EXEC\"\n")
	for name, tt := range map[string]struct {
		real, byKeys  bool
		removed, left int64
	}{
		"scan": {false, false, 1202, 1}, "keys": {false, true, 1202, 1}, "real, scan": {true, false, 0, 1203},
		"real, keys": {true, true, 0, 1203},
	} {
		t.Run(name, func(t *testing.T) {
			c.do("FLUSHALL")
			c.do("SET", "slowpath:x", "of another load")
			r, err := ReadMonitor(strings.NewReader(log.String()), ReplayOptions{
				KeyPrefix: "replay:",
				KeepKeys:  tt.real,
			})
			if err != nil {
				t.Fatal(err)
			}
			for s := r.Streams(1, 0, 0)[0]; s.Remaining() > 0; {
				b, q := s.Next(nil)
				c.send(b, int(q.Replies))
			}
			clean := r.CleanupByScan
			if tt.byKeys {
				clean = r.CleanupByKeys
			}
			removed, err := clean(t.Context(), c)
			left, _ := c.do("DBSIZE").Integer()
			if removed != tt.removed || err != nil || left != tt.left || r.Writes() == tt.real {
				t.Errorf("%d removed, %v; %d left; writes %v", removed, err, left, r.Writes())
			}
		})
	}
}
