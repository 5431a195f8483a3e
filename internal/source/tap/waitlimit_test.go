//go:build linux

package tap

import (
	"testing"

	"slowpath/internal/clock"
	"slowpath/internal/recording"
	"slowpath/internal/source/host"
)

// TestWaitLimit: the longest waits of a second with many are kept, all of one with few, and what was left out is
// reported.
func TestWaitLimit(t *testing.T) {
	var c waitLimit
	second := func(at int64, each int) (written map[int64]int) {
		written = map[int64]int{}
		for i := range each {
			for _, ns := range []int64{3e5, 1e6, 2e7} {
				if c.admits(at*1e9+int64(i), ns) {
					written[ns]++
				}
			}
		}
		return written
	}
	if w := second(100, 100); w[3e5] != 100 || w[1e6] != 100 || w[2e7] != 100 || c.longest != 0 {
		t.Errorf("a quiet second: %v, %d ns", w, c.longest)
	}
	w := second(101, 5000)
	if w[2e7] != 5000 || w[3e5] == 0 || w[3e5] >= w[1e6] || w[1e6] > 2*maxWaitsPerSecond {
		t.Errorf("a crowded one: %v", w)
	}
	for at := int64(102); at < 120; at++ {
		w = second(at, 10)
	}
	if w[3e5] != 10 || c.shortest >= int64(DefaultMinWork) {
		t.Errorf("quiet again: %v, %d ns", w, c.shortest)
	}
	rec := recording.New()
	o := Options{Clock: clock.New(), Files: host.Root{}, Sink: rec, Nodes: []Node{{Address: "a:1"}}}
	c.report(o)
	if e := rec.Events; len(e) != 1 || e[0].Kind != recording.KindBlindSpot {
		t.Fatalf("%+v", e)
	}
	(&waitLimit{}).report(o)
	if len(rec.Events) != 1 {
		t.Error("reported although nothing was left out")
	}
}
