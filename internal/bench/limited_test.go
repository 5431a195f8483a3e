//go:build linux

package bench

import (
	"slices"
	"testing"
	"time"

	"slowpath/internal/limit"
	"slowpath/internal/load"
)

// TestLimitOfRealLoads: what a real load was limited by is one of what can have limited it. On a machine that others use too, CPUs may be what it
// is; which of the two it was shows in the ready times, so that no other answer is right. scripts/limits tells the situations apart where they
// are made so that there is but one answer.
func TestLimitOfRealLoads(t *testing.T) {
	server := redis(t)
	for _, c := range []struct {
		name   string
		change func(*load.Options)
		want   []string
	}{
		{"one call in flight", func(o *load.Options) { o.Connections, o.Pipeline, o.Threads = 1, 1, 1 },
			[]string{limit.ByRoundTrip, limit.BySharedCPU, limit.ByServerCPU}},
		{"a rate that is easily kept", func(o *load.Options) {
			o.Schedule, o.Arrivals = []load.Stretch{{Lasts: time.Hour, From: 200, To: 200}}, load.Uniform
		}, []string{limit.ByRate, limit.ByGeneratorCPU, limit.BySharedCPU}},
		{"many calls in flight", func(o *load.Options) { o.Connections, o.Pipeline, o.Threads = 50, 32, 2 },
			[]string{limit.ByServerCPU, limit.BySharedCPU, limit.ByGeneratorCPU}},
		{"a pool of one", func(o *load.Options) { o.Pool, o.Workers, o.Pipeline, o.Threads = 1, 40, 1, 1 },
			[]string{limit.ByPool, limit.BySharedCPU, limit.ByGeneratorCPU}},
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
				t.Errorf("limited by %s (%s), want one of %v; %+v", r.LimitedBy, r.Limit.Sentence, c.want, r.Limit.Evidence)
			}
			marked := r.LimitedBy == limit.ByGeneratorCPU || r.LimitedBy == limit.BySharedCPU
			if r.Limit.GeneratorLimited != marked {
				t.Errorf("%s is marked: %v", r.LimitedBy, r.Limit.GeneratorLimited)
			}
		})
	}
}
