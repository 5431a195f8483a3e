package views

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"slowpath/internal/house/golden"

	"slowpath/internal/report/layout"
	"slowpath/internal/topology/simulate"
)

func TestSimulation(t *testing.T) {
	s := simulate.Setup{
		Server: "redis 6.0.16", Size: simulate.SizeOf(40, 1, 6), Masters: 40, Replicas: 1, Spread: 2 * time.Second,
		Clients: 200, Calls: 10, InUse: 16384, RTT: 500 * time.Microsecond, Duration: time.Minute, Seed: 1,
	}
	var err error
	if s.Costs, err = simulate.CostsOf(s.Server, s.Size); err != nil {
		t.Fatal(err)
	}
	var policies []simulate.Policy
	for _, text := range append(simulate.Presets(), "lettuce-6-adaptive,guard=5s,ask=replicas,choose=epoch") {
		p, err := simulate.ParsePolicy(text)
		if err != nil {
			t.Fatal(err)
		}
		policies = append(policies, p)
	}
	for _, kind := range simulate.ChangeKinds {
		s.Change = simulate.Change{
			Kind: kind, At: 10 * time.Second, Slots: 50, PerSecond: 50, Promotion: 6 * time.Second,
			Back: 20 * time.Second, Loading: 10 * time.Second,
		}
		r := &simulate.Report{Schema: simulate.Schema, Setup: s, Costs: simulate.Reference}
		if r.Results, err = simulate.Compare(t.Context(), s, policies, func(string) {}); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := Simulation(&b, r, layout.Style{Width: 80, Unicode: true}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(b.String(), "\n") {
			if layout.Width(line) > 80 {
				t.Errorf("%d columns: %q", layout.Width(line), line)
			}
		}
		golden.Check(t, "simulation-"+string(kind)+".80.golden", b.Bytes())
	}
}
