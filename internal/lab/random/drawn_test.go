package random

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"slowpath/internal/lab/apps"
	"slowpath/internal/lab/clients"
	"slowpath/internal/lab/scenario"
	"slowpath/internal/lab/servers"
)

// TestDrawIsReproducible: a seed decides the drawn scenario and the order of its trials; another one makes another.
func TestDrawIsReproducible(t *testing.T) {
	seen := map[string]uint64{}
	seeds := uint64(300)
	if testing.Short() {
		seeds = 60
	}
	for seed := range seeds {
		s := Draw(seed, "")
		if !reflect.DeepEqual(s, Draw(seed, "")) || !reflect.DeepEqual(plan(seed, s.Faults), plan(seed, s.Faults)) {
			t.Fatalf("seed %d is not reproducible", seed)
		}
		body, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[string(body)]; ok {
			t.Errorf("seeds %d and %d make the same", other, seed)
		}
		seen[string(body)] = seed
	}
}

// TestDrawFits: each drawn scenario has what its faults need.
func TestDrawFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		only := rapid.SampledFrom(append(servers.Known(), "")).Draw(t, "only")
		s := Draw(rapid.Uint64().Draw(t, "seed"), only)
		if only != "" && s.Server != only {
			t.Errorf("%s instead of %s", s.Server, only)
		}
		for _, c := range s.Callers {
			isSite := slices.Contains(sites, c.Program)
			if !fits(c.Program, s.Topology, s.Server) || c.Workers < 2 || c.PerSecond < 15 ||
				isSite == (c.Reads > 0) || isSite == (c.Items > 0) {
				t.Errorf("caller %+v of %s, %s", c, s.Server, s.Topology)
			}
		}
		for i, f := range s.Faults {
			n := f.kind().Needs
			if n.Topologies != nil && !slices.Contains(n.Topologies, s.Topology) {
				t.Errorf("%s in %s", f.Name, s.Topology)
			}
			if n.Callers != nil && !slices.Contains(n.Callers, s.Callers[0].Program) {
				t.Errorf("%s with %s", f.Name, s.Callers[0].Program)
			}
			if n.With != "" && (i == 0 || s.Faults[0].Name != n.With) {
				t.Errorf("%s without %s", f.Name, n.With)
			}
		}
	})
}

// TestDrawDrawsAll: about a third of the drawn scenarios has no fault, and each fault is drawn, weak and strong.
func TestDrawDrawsAll(t *testing.T) {
	seeds := 3000
	if testing.Short() { // with the race detector they take half a minute
		seeds = 600
	}
	none, drawn, programs := 0, map[string]int{}, map[clients.Name]int{}
	for seed := range uint64(seeds) {
		s := Draw(seed, "")
		programs[s.Callers[0].Program]++
		if len(s.Faults) == 0 {
			none++
		}
		for _, f := range s.Faults {
			drawn[f.Name]++
		}
	}
	if none < seeds*3/10 || none > seeds*37/100 {
		t.Errorf("%d of %d have no fault", none, seeds)
	}
	for _, f := range scenario.Faults() {
		if drawn[f.Name] < seeds/300 {
			t.Errorf("%s is drawn %d times of %d", f.Name, drawn[f.Name], seeds)
		}
		other, ok := scenario.FindFault(f.Needs.With)
		if f.Needs.With != "" && (!ok || !together(other, f, servers.Known())) {
			t.Errorf("%s needs %s, which does not go with it", f.Name, f.Needs.With)
		}
		if (f.On == nil) == (f.Caller == nil) {
			t.Errorf("%s has On and Caller, or neither", f.Name)
		}
		if (f.Base != nil || f.Caller != nil) && f.Needs.Callers == nil {
			t.Errorf("%s changes options of client libraries, and lets sites be callers, which have none", f.Name)
		}
	}
	t.Log(none, drawn, programs)
}

// TestCallersInEightLanguages: each of them calls in some drawn scenario without a fault.
func TestCallersInEightLanguages(t *testing.T) {
	missing := []string{"C", "Go", "Java", "JavaScript", "PHP", "Python", "Ruby", "Rust"}
	for seed := range uint64(3000) {
		s := Draw(seed, "")
		if len(s.Faults) > 0 {
			continue
		}
		for _, c := range s.Callers {
			if client, err := clients.Lookup(c.Program); err == nil {
				missing = slices.DeleteFunc(missing, func(l string) bool { return l == client.Language })
			}
			if app, err := apps.Lookup(apps.Name(c.Program)); err == nil {
				missing = slices.DeleteFunc(missing, func(l string) bool { return l == app.Language })
			}
		}
		if len(missing) == 0 {
			return
		}
	}
	t.Errorf("no caller in %v", missing)
}

func TestPlan(t *testing.T) {
	needs := []Fault{{Name: "short-lived-connections"}, {Name: "maxclients"}}
	for _, faults := range [][]Fault{nil, make([]Fault, 1), make([]Fault, 2), needs} {
		sets, with := setsOf(faults), map[int]int{}
		for _, block := range plan(7, faults) {
			if !slices.Equal(slices.Sorted(slices.Values(block)), sets) {
				t.Errorf("%v: block %v", faults, block)
			}
			for fault := range faults {
				for _, set := range sets {
					if set>>fault&1 == 1 && slices.Contains(sets, set&^(1<<fault)) {
						with[fault]++
					}
				}
			}
		}
		for fault, n := range with {
			want := 12
			if len(sets) == 3 {
				want = 8
			}
			if n != want {
				t.Errorf("%v: %d pairs for fault %d, want %d", faults, n, fault, want)
			}
		}
	}
}
