package experiment

import (
	"fmt"
	"math"
	"strings"

	"slowpath/internal/load/bottleneck"
	"slowpath/internal/stats"
)

// conclude computes what the loads show.
func (s *Targets) conclude() {
	first := &s.Targets[0]
	for i := range s.Targets {
		t := &s.Targets[i]
		t.summarise()
		if i > 0 {
			t.compareWith(first, s.Open)
		}
	}
	s.Summary = s.sentence()
	s.Caveat = s.caveat()
	s.note()
}

// runs are the loads of its rounds.
func (t *Compared) runs() []Run {
	out := make([]Run, len(t.Runs))
	for i, r := range t.Runs {
		out[i] = r.Run
	}
	return out
}

func (t *Compared) summarise() {
	runs := t.runs()
	if len(runs) == 0 {
		return
	}
	median := func(of func(Run) float64) *Estimate {
		m := stats.EstimateMedian(each(runs, of))
		e := estimate(m.Value, m.Low, m.High)
		return &e
	}
	t.RequestsPerSecond = median(perSecond)
	t.P50Ns, t.P99Ns = median(p50), median(p99)
	t.GeneratorCPU = median(func(r Run) float64 { return r.CPUSecondsPerMillion })
	seen := func(of func(Run) *float64) *Estimate {
		for _, r := range runs {
			if of(r) == nil {
				return nil
			}
		}
		return median(func(r Run) float64 { return *of(r) })
	}
	t.ServerCPU = seen(func(r Run) *float64 { return r.ServerCPUSecondsPerMillion })
	t.ProxyCPU = seen(func(r Run) *float64 { return r.ProxyCPUSecondsPerMillion })
	t.ErrorShare = stats.Median(each(runs, func(r Run) float64 { return r.ErrorShare }))
	t.limits(runs)
}

func perSecond(r Run) float64 { return r.RequestsPerSecond }

func p50(r Run) float64 { return float64(r.Latency.P50Ns) }

func p99(r Run) float64 { return float64(r.Latency.P99Ns) }

// limits finds what limited most rounds; of several the one that was first.
func (t *Compared) limits(runs []Run) {
	by, generator := map[string]int{}, 0
	for _, r := range runs {
		by[r.LimitedBy]++
		if r.GeneratorLimited || r.LimitedBy == bottleneck.BySharedCPU {
			generator++
		}
	}
	for _, r := range runs {
		if by[r.LimitedBy] > t.LimitedRounds {
			t.LimitedBy, t.LimitedRounds, t.Sentence = r.LimitedBy, by[r.LimitedBy], r.Sentence
		}
	}
	t.GeneratorLimited = 2*generator >= len(runs)
}

// compareWith compares with the first target, over the rounds that both have.
func (t *Compared) compareWith(first *Compared, open bool) {
	ratio := func(of func(Run) float64, by float64) (Estimate, bool) {
		p := stats.ComparePairs(logRatios(first.Runs, t.Runs, of))
		e := estimate(by*math.Exp(p.Shift), by*math.Exp(p.Low), by*math.Exp(p.High))
		if math.IsInf(p.Low, 0) {
			e.Low, e.High = nil, nil
		}
		return e, p.Pairs > 0
	}
	rate, ok := ratio(perSecond, 1)
	if !ok {
		return
	}
	half, _ := ratio(p50, 1)
	tail, _ := ratio(p99, 1)
	t.Change = &Changes{rate.less1(), half.less1(), tail.less1()}
	if a, n := first.Target.Nodes, t.Target.Nodes; a > 0 && n > 0 && n != a && !open {
		e, _ := ratio(perSecond, float64(a)/float64(n))
		t.PerNode = &e
	}
}

// less1 makes a change of a ratio.
func (e Estimate) less1() Estimate {
	less := func(v *float64) *float64 {
		if v == nil {
			return nil
		}
		return finite(*v - 1)
	}
	return Estimate{e.Value - 1, less(e.Low), less(e.High)}
}

// logRatios are the logarithms of the ratios of b to a, by rounds.
func logRatios(a, b []Round, of func(Run) float64) (out []float64) {
	at := map[int]float64{}
	for _, r := range a {
		at[r.Round] = of(r.Run)
	}
	for _, r := range b {
		if x, y := at[r.Round], of(r.Run); x > 0 && y > 0 {
			out = append(out, math.Log(y/x))
		}
	}
	return out
}

// who is "B (cluster of 3)".
func (t *Compared) who() string { return t.Name + " (" + t.Target.Label() + ")" }

func (s *Targets) sentence() string {
	first := &s.Targets[0]
	if len(first.Runs) == 0 {
		return fmt.Sprintf("%s was down: there is nothing to compare the others with.", first.who())
	}
	what := "Calls per second"
	if s.Open {
		what = "p99"
	}
	var parts []string
	for i := range s.Targets[1:] {
		parts = append(parts, s.against(&s.Targets[i+1]))
	}
	return fmt.Sprintf("%s against %s: %s.", what, first.who(), strings.Join(parts, "; "))
}

// against is "B (cluster of 3) 85 % more (80 to 90 %), each node 62 % of A's (60 to 63 %)".
func (s *Targets) against(t *Compared) string {
	switch {
	case len(t.Runs) == 0:
		return t.who() + " was down"
	case t.Change == nil:
		return t.who() + " has no round in common with it"
	}
	text := t.who() + " " + changeText(t.Change.RequestsPerSecond, "more", "fewer")
	if s.Open {
		text = t.who() + " " + changeText(t.Change.P99Ns, "longer", "shorter")
	}
	if e := t.PerNode; e != nil {
		text += fmt.Sprintf(", each node %s %% of %s's", percent(e.Value), s.Targets[0].Name)
		if e.Low != nil && e.High != nil {
			text += fmt.Sprintf(" (%s to %s %%)", percent(*e.Low), percent(*e.High))
		}
	}
	if n := len(t.Failures); n > 0 {
		text += fmt.Sprintf(", down in %d of %d rounds", n, n+len(t.Runs))
	}
	return text
}

// changeText is "31 % fewer (29 to 33 %)", or that no difference is shown.
func changeText(e Estimate, more, less string) string {
	word := more
	if e.Value < 0 {
		word = less
	}
	text := percent(math.Abs(e.Value)) + " % " + word
	switch {
	case e.Low == nil || e.High == nil:
		return text
	case *e.Low <= 0 && *e.High >= 0:
		return fmt.Sprintf("no difference shown (%s to %s %%)", signed(*e.Low), signed(*e.High))
	case e.Value < 0:
		return fmt.Sprintf("%s (%s to %s %%)", text, percent(-*e.High), percent(-*e.Low))
	}
	return fmt.Sprintf("%s (%s to %s %%)", text, percent(*e.Low), percent(*e.High))
}

// caveat says where the loads tell of the generator or its host, and not of the targets.
func (s *Targets) caveat() string {
	var generator, shared []string
	for _, t := range s.Targets {
		switch {
		case !t.GeneratorLimited:
		case t.LimitedBy == bottleneck.BySharedCPU:
			shared = append(shared, t.Name)
		default:
			generator = append(generator, t.Name)
		}
	}
	var out []string
	switch {
	case len(generator) == 0:
	case s.Open:
		out = append(out, fmt.Sprintf("The generator was late at %s: some of the latencies are its own. Use more "+
			"--threads, or a machine of its own for the generator.", strings.Join(generator, ", ")))
	default:
		out = append(out, fmt.Sprintf("The generator was the limit at %s: %s can do more, and the differences from "+
			"the others may be larger. Use more --threads, or a machine of its own for the generator.",
			strings.Join(generator, ", "), plural(len(generator), "this target", "these targets")))
	}
	if len(shared) > 0 {
		out = append(out, fmt.Sprintf("At %s the generator, the servers and what else runs there competed for the "+
			"same CPUs: the calls per second are those of all together, and nodes that share a machine cannot scale. "+
			"Use a machine of its own for the generator.", strings.Join(shared, ", ")))
	}
	return strings.Join(out, " ")
}

func plural(n int, one, several string) string {
	if n == 1 {
		return one
	}
	return several
}
