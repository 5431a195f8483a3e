package cost

import (
	"math"
	"strings"
	"testing"
)

// TestReference: the file is complete, has every version with its commands, and a law for each.
func TestReference(t *testing.T) {
	points, err := ParseReference(referenceText)
	if err != nil || len(points) == 0 {
		t.Fatal(err)
	}
	for _, version := range measuredVersions {
		for _, c := range Commands {
			l, ok := laws()[lawKey{version, c}]
			older := strings.HasPrefix(version, "redis-5") || strings.HasPrefix(version, "redis-6")
			if ok == (older && c == Shards) {
				t.Errorf("%s of %s: a law %v", c, version, ok)
			}
			for i, part := range l.usec {
				if part < 0 || math.IsNaN(part) {
					t.Errorf("%s of %s: part %d is %v", c, version, i, part)
				}
			}
		}
	}
	// From 6.0 to 7.0 a call gets many times cheaper.
	old, now, size := laws()[lawKey{"redis-6.0.16", Nodes}], laws()[lawKey{"redis-7.0.15", Nodes}],
		Size{Nodes: 80, Masters: 80, Ranges: 480, Entries: 480}
	if old.at(size) < 5*now.at(size) {
		t.Errorf("80 nodes: %.1f µs on 6.0, %.1f µs on 7.0", old.at(size), now.at(size))
	}
	if cached := laws()[lawKey{cachedSlotsVersion, Slots}]; cached.at(size) > now.at(size)/2 {
		t.Errorf("the cached SLOTS cost %.1f µs, NODES %.1f µs", cached.at(size), now.at(size))
	}
}

func TestParseReferenceRefuses(t *testing.T) {
	for _, text := range []string{
		"", "x\n", ReferenceHead + "a\tb\n", ReferenceHead + "r\tnodes\t1\t1\t1\tx\t1\n",
		ReferenceHead + "r\tnodes\t1\t1\t1\t1\t0\n",
	} {
		if p, err := ParseReference(text); err == nil {
			t.Errorf("%q: %v", text, p)
		}
	}
}

func TestFit(t *testing.T) {
	for _, want := range []law{
		{Nodes, [3]float64{10, 2, 0.05}},
		{Nodes, [3]float64{0, 8, 0.1}},
		{Slots, [3]float64{3, 0, 0.4}},
		{Shards, [3]float64{0, 0, 1}},
	} {
		var points []Point
		for _, s := range []Size{
			{3, 3, 3, 3},
			{12, 6, 60, 120},
			{40, 40, 40, 40},
			{160, 80, 480, 960},
			{300, 300, 9000, 9000},
		} {
			points = append(points, Point{Command: want.command, Size: s, PerCall: want.at(s)})
		}
		got := fit(want.command, points)
		for i := range want.usec {
			if math.Abs(got.usec[i]-want.usec[i]) > 1e-6*(1+want.usec[i]) {
				t.Errorf("got %v, want %v", got.usec, want.usec)
			}
		}
	}
	// A cost that falls with the size must not make a part negative.
	falling := []Point{
		{Command: Nodes, Size: Size{Nodes: 1, Ranges: 1}, PerCall: 9},
		{Command: Nodes, Size: Size{Nodes: 10, Ranges: 5}, PerCall: 6},
		{Command: Nodes, Size: Size{
			Nodes:  20,
			Ranges: 30,
		}, PerCall: 3},
	}
	if l := fit(Nodes, falling); l.usec[0] <= 0 || l.usec[1] < 0 || l.usec[2] < 0 {
		t.Errorf("falling: %v", l.usec)
	}
}

func TestMeasuredVersionFor(t *testing.T) {
	for product, want := range map[string]string{
		"redis 5.0.14": "redis-5.0.6", "redis 4.0.1": "redis-5.0.6",
		"redis 6.0.20": "redis-6.0.16", "redis 6.2.7": "redis-6.2.14", "redis 7.4.2": "redis-7.0.15",
		"redis 8.2.1": "redis-8.0.2", "valkey 7.2.5": "redis-7.0.15", "valkey 8.0.1": "valkey-8.1.1",
		"valkey 9.1.0": "valkey-8.1.1", "redis 10.0.0": "redis-8.0.2",
		"dragonfly 1.2": "", "": "", "redis": "", "redis x": "",
	} {
		if got, _ := measuredVersionFor(product); got != want {
			t.Errorf("%q: %q, want %q", product, got, want)
		}
	}
}

func TestScaledTo(t *testing.T) {
	s := Size{Nodes: 80, Masters: 40, Ranges: 240, Entries: 480}
	if got := s.scaledTo(300); got != (Size{300, 150, 900, 1800}) {
		t.Errorf("300 nodes: %+v", got)
	}
	if got := s.scaledTo(80); got != s {
		t.Errorf("as now: %+v", got)
	}
	if got := (Size{Nodes: 40, Masters: 40, Ranges: 16384, Entries: 16384}).scaledTo(300); got.Ranges != 16384 ||
		got.Entries != 16384 {
		t.Errorf("more ranges than slots: %+v", got)
	}
}
