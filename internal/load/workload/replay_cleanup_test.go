package workload

import (
	"fmt"
	"strings"
	"testing"
)

// TestReplayOps: the kinds of commands that a load tells apart are bounded.
func TestReplayOps(t *testing.T) {
	var log strings.Builder
	for n := range 200 {
		for range 200 - n {
			fmt.Fprintf(&log, "1700000000.000000 [0 10.0.0.1:1] \"MY.%d\" \"k\"\n", n)
		}
	}
	r, err := ReadMonitor(strings.NewReader(log.String()), ReplayOptions{KeepKeys: true, Dangerous: true})
	if err != nil {
		t.Fatal(err)
	}
	counts := make([]float64, len(r.Ops))
	for s := r.Streams(1, 0, 0)[0]; s.Remaining() > 0; {
		b, q := s.Next(nil)
		counts[q.Op]++
		if name := r.Ops[q.Op].Name; name != commandsOf(t, b)[0][0] && name != "others" {
			t.Fatalf("%q is counted as %s", b, name)
		}
	}
	for op, n := range counts {
		if n != r.Ops[op].Ratio {
			t.Errorf("%s: %v of %v", r.Ops[op].Name, n, r.Ops[op].Ratio)
		}
	}
	if len(r.Ops) != maxOps || r.Ops[0].Name != "MY.0" || r.Ops[maxOps-1].Name != "others" {
		t.Errorf("%d kinds, first %v, last %v", len(r.Ops), r.Ops[0], r.Ops[len(r.Ops)-1])
	}
}
