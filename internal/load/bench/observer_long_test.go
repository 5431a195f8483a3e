//go:build linux

package bench

import (
	"slices"
	"testing"
	"time"

	"slowpath/internal/house/needs"
	"slowpath/internal/load/bottleneck"
	"slowpath/internal/load/engine"
)

// TestBottleneckOfRealLoads: the bottleneck of a real load is one of those that are possible. On a machine that others
// use too it may also be the shared CPUs. scripts/limits makes situations that have only one right answer.
func TestBottleneckOfRealLoads(t *testing.T) {
	needs.Long(t, needs.RedisServer, needs.QuietCPU)
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
			t.Logf("%s: %s %v", r.LimitedBy, r.Bottleneck.Sentence, r.Bottleneck.Notes)
			if !slices.Contains(c.want, r.LimitedBy) || r.Bottleneck.Sentence == "" {
				t.Errorf("limited by %s (%s), want one of %v; %+v", r.LimitedBy, r.Bottleneck.Sentence, c.want,
					r.Bottleneck.Evidence)
			}
			marked := r.LimitedBy == bottleneck.ByGeneratorCPU || r.LimitedBy == bottleneck.BySharedCPU
			if r.Bottleneck.GeneratorLimited != marked {
				t.Errorf("%s is marked: %v", r.LimitedBy, r.Bottleneck.GeneratorLimited)
			}
		})
	}
}
