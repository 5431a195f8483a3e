//go:build linux

package bench

import (
	"slices"
	"testing"
	"time"

	"slowpath/internal/load/bottleneck"
	"slowpath/internal/load/engine"
)

// TestLimitOfRealLoads: what a real load was limited by is one of what can have limited it. On a machine that others
// use too, CPUs may be what it is; which of the two it was shows in the ready times, so that no other answer is right.
// scripts/limits tells the situations apart where they are made so that there is but one answer.
func TestLimitOfRealLoads(t *testing.T) {
	server := redis(t)
	for _, c := range []struct {
		name   string
		change func(*engine.Options)
		want   []string
	}{
		{
			"one call in flight", func(o *engine.Options) { o.Connections, o.Pipeline, o.Threads = 1, 1, 1 },
			[]string{bottleneck.ByRoundTrip, bottleneck.BySharedCPU, bottleneck.ByServerCPU},
		},
		{"a rate that is easily kept", func(o *engine.Options) {
			o.Schedule, o.Arrivals = []engine.Stretch{{Lasts: time.Hour, From: 200, To: 200}}, engine.Uniform
		}, []string{bottleneck.ByRate, bottleneck.ByGeneratorCPU, bottleneck.BySharedCPU}},
		{
			"many calls in flight", func(o *engine.Options) { o.Connections, o.Pipeline, o.Threads = 50, 32, 2 },
			[]string{bottleneck.ByServerCPU, bottleneck.BySharedCPU, bottleneck.ByGeneratorCPU},
		},
		{
			"a pool of one", func(o *engine.Options) { o.Pool, o.Workers, o.Pipeline, o.Threads = 1, 40, 1, 1 },
			[]string{bottleneck.ByPool, bottleneck.BySharedCPU, bottleneck.ByGeneratorCPU},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options(t, server)
			o.Load.Duration = time.Second
			c.change(&o.Load)
			r, err := Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %s %v", r.LimitedBy, r.Limit.Sentence, r.Limit.Beside)
			if !slices.Contains(c.want, r.LimitedBy) || r.Limit.Sentence == "" {
				t.Errorf("limited by %s (%s), want one of %v; %+v", r.LimitedBy, r.Limit.Sentence, c.want,
					r.Limit.Evidence)
			}
			marked := r.LimitedBy == bottleneck.ByGeneratorCPU || r.LimitedBy == bottleneck.BySharedCPU
			if r.Limit.GeneratorLimited != marked {
				t.Errorf("%s is marked: %v", r.LimitedBy, r.Limit.GeneratorLimited)
			}
		})
	}
}
