package experiment

import (
	"fmt"
	"strings"

	"slowpath/internal/load/bottleneck"
)

// addNotes adds what one must know to read the sweep.
func (s *Sweep) addNotes(o SweepOptions) {
	note := func(sentence string, args ...any) { s.Notes = append(s.Notes, fmt.Sprintf(sentence, args...)) }
	var limited []string
	for _, p := range s.Points {
		if p.GeneratorLimited {
			limited = append(limited, fmt.Sprint(p.Value))
		}
	}
	if len(limited) > 0 {
		note("The generator was the bottleneck at %s: these loads count in neither law nor knee, and the server may "+
			"do "+
			"more. Use more --threads, or more machines.", strings.Join(limited, ", "))
	}
	switch l := s.Law; {
	case l == nil && o.Axis.concurrency():
		note("No law of scalability is fitted: %s.", s.NoLaw)
	case l != nil && !l.Holds:
		note("The universal scalability law does not describe these loads: at %d it is %+.0f %% off, more than noise "+
			"explains (R² %.3f). The knee comes from the points.", l.WorstAt, l.WorstOff*100, l.R2)
	}
	if l := s.Law; l != nil && l.Noise != nil && *l.Noise > o.Gain {
		note("Loads at the same value differ by %.0f %% (standard deviation), more than the %.0f %% that make a "+
			"knee: see what else runs on these machines, or give a longer --for and more --repeat.", *l.Noise*100,
			o.Gain*100)
	}
	shared := 0
	for _, p := range s.Points {
		if p.LimitedBy == bottleneck.BySharedCPU {
			shared++
		}
	}
	if 2*shared > len(s.Points) {
		note("Server and generator competed for the same CPUs in most loads: the curve is that of both together. " +
			"Run the generator on a separate machine.")
	}
	if o.Repeats < 2 {
		note("One load per value: the spread is not known, and noise can look like a knee. --repeat 3 shows it.")
	}
	if s.Interrupted {
		note("The sweep was ended early: not all values have all their loads.")
	}
}
