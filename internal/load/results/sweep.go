package results

import (
	"fmt"
	"io"
	"strings"
	"time"

	"slowpath/internal/format"
	"slowpath/internal/load/experiment"
	"slowpath/internal/report/layout"
)

// Sweep writes a sweep for a person: the knee, the points, the curve.
func Sweep(w io.Writer, s *experiment.Sweep, style layout.Style) error {
	p := newPage(style)
	p.Paragraph("", "", s.Summary, layout.Bold)
	p.Gap()
	p.sweepTable(s)
	p.curve(s)
	if s.Law != nil {
		p.Gap()
		p.law(s.Law)
	}
	p.experimentNotes(s.Setup, s.Notes, fmt.Sprintf("%s per value, in %s of shuffled order", format.Count(s.Repeats,
		"load"), format.Count(s.Repeats, "round")))
	return p.To(w, "the sweep")
}

// SweepJSON writes the document slowpath.sweep/v1.
func SweepJSON(w io.Writer, s *experiment.Sweep) error { return layout.JSON(w, "the sweep", s) }

var sweepWidths = []int{12, 10, 8, 8, 8, 8, 8, 6}

func (p *page) sweepTable(s *experiment.Sweep) {
	p.Heads(sweepWidths, strings.ToUpper(s.Axis), "PER S", "SPREAD", "P50", "P99", "P99.9", "MAX", "ERR")
	for _, pt := range s.Points {
		l := pt.Latency
		name := format.Thousands(pt.Value)
		if pt.GeneratorLimited {
			name += " x"
		}
		spread := "-"
		if len(pt.Runs) > 1 {
			spread = fmt.Sprintf("±%.1f %%", (pt.High-pt.Low)/2/pt.RequestsPerSecond*100)
		}
		p.Row(layout.None, sweepWidths, name, format.Thousands(pt.RequestsPerSecond), spread, format.Duration(l.P50Ns),
			format.Duration(l.P99Ns), format.Duration(l.P999Ns), format.Duration(l.MaxNs),
			errorShare(pt.ErrorShare))
	}
}

func errorShare(share float64) string {
	if share == 0 {
		return "0"
	}
	return format.Percent(share)
}

// law prints the parameters with their intervals.
func (p *page) law(l *experiment.Law) {
	held := "holds"
	if !l.Holds {
		held = "does not hold"
	}
	facts := []string{
		fmt.Sprintf("law X(N) = λN/(1+σ(N-1)+κN(N-1)) %s, R² %.3f", held, l.R2), "λ " + interval(l.Lambda,
			"%.0f") + " per second", "σ " + interval(l.Sigma, "%.3g"),
		"κ " + interval(l.Kappa, "%.3g"),
	}
	p.Facts("", facts, layout.None)
}

// interval prints an estimate with its 95 % interval; a bound that is not known is "?".
func interval(e experiment.Estimate, format string) string {
	bound := func(v *float64) string {
		if v == nil {
			return "?"
		}
		return fmt.Sprintf(format, *v)
	}
	return fmt.Sprintf(format, e.Value) + " (" + bound(e.Low) + " to " + bound(e.High) + ")"
}

// experimentNotes ends the text of an experiment: how its loads were made, and what one must know.
func (p *page) experimentNotes(s experiment.Setup, notes []string, how string) {
	p.Gap()
	p.Facts("", experimentFacts(s, how), layout.Dim)
	for _, n := range notes {
		p.Gap()
		p.Paragraph("", "", n, layout.None)
	}
}

// experimentFacts say how the loads were made, and how long each was.
func experimentFacts(s experiment.Setup, how string) []string {
	facts := []string{how, "each " + format.Interval(time.Duration(s.DurationNs))}
	if s.DurationNs == 0 {
		facts = facts[:1]
	}
	if s.WarmUpNs > 0 {
		facts = append(facts, format.Interval(time.Duration(s.WarmUpNs))+" of warm-up left out")
	}
	return facts
}
