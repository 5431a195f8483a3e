package tracing

import (
	"time"

	"slowpath/internal/cli"
	"slowpath/internal/source/tap"
	"slowpath/internal/trace"
)

// Options are the flags of trace, and what they say once they are checked.
type Options struct {
	Duration                 time.Duration
	Slow                     string // a duration, or auto
	Count                    int
	All, Each, AsJSON        bool
	Sample, Record, Perfetto string
	Segments                 []string
	Filter                   trace.Filter
	Processes                tap.ProcessFilter
	TapBudget                float64 // of the kernel programs, in percent of a core; 0: no limit

	slow      time.Duration // 0: auto
	tapPart   float64       // of a core; 0: no limit
	perSecond float64       // of the sample; 0 where none is wanted
}

// Check reads what flags say. changed tells whether one was given.
func (f *Options) Check(changed func(flag string) bool) (err error) {
	if f.slow, err = cli.ParseSlow(f.Slow); err != nil {
		return err
	}
	for name, d := range map[string]time.Duration{"for": f.Duration, "min": f.Filter.Min, "max": f.Filter.Max} {
		if d < 0 {
			return cli.Usagef("--%s %v: must not be negative", name, d)
		}
	}
	rate, err := cli.ParseRate(f.Sample)
	switch {
	case err != nil:
		return cli.Usagef("--sample %q: %w", f.Sample, err)
	case f.All:
		f.perSecond = rate
	case changed("sample"):
		return cli.Usagef("--sample has no effect without --all")
	}
	if f.tapPart, err = cli.TapBudget(f.TapBudget); err != nil {
		return err
	}
	if f.Count < 0 {
		return cli.Usagef("--count %d: must not be negative", f.Count)
	}
	if f.Filter.Max > 0 && f.Filter.Max < f.Filter.Min {
		return cli.Usagef("--max %v is below --min %v: no call is so", f.Filter.Max, f.Filter.Min)
	}
	for _, text := range f.Segments {
		s, err := trace.ParseCondition(text)
		if err != nil {
			return cli.Usagef("--segment %q: %w", text, err)
		}
		f.Filter.Conditions = append(f.Filter.Conditions, s)
	}
	return nil
}
