package results

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"slowpath/internal/format"
	"slowpath/internal/load/bottleneck"
	"slowpath/internal/load/experiment"
	"slowpath/internal/report/layout"
)

// Targets writes the comparison of several targets for a person: one table with a column for each.
func Targets(w io.Writer, s *experiment.Targets, style layout.Style) error {
	p := newPage(style)
	p.Paragraph("", "", s.Summary, layout.Bold)
	if s.Caveat != "" {
		p.Gap()
		p.Paragraph("", "", s.Caveat, layout.Alarm)
	}
	p.Gap()
	for _, t := range s.Targets {
		p.Paragraph(t.Name+"  ", "   ", targetText(t.Target), layout.None)
	}
	p.targetsTable(s)
	p.targetLimits(s.Targets)
	p.Gap()
	p.Paragraph("", "", "Medians over the rounds, ± their 95 % interval. What is against "+s.Targets[0].Name+
		" is the ratio of loads of the same round.", layout.Dim)
	p.experimentNotes(s.Setup, s.Notes, targetRounds(s))
	return p.To(w, "the comparison")
}

// targetRounds is "6 rounds of 2 targets in turns (A B, and back)".
func targetRounds(s *experiment.Targets) string {
	names := make([]string, len(s.Targets))
	for i, t := range s.Targets {
		names[i] = t.Name
	}
	return fmt.Sprintf("%s of %s in turns (%s, and back)", format.Count(s.Rounds, "round"),
		format.Count(len(names), "target"), strings.Join(names, " "))
}

// TargetsJSON writes the document slowpath.targets/v1.
func TargetsJSON(w io.Writer, s *experiment.Targets) error {
	return layout.JSON(w, "the comparison", s)
}

// targetText is "10.0.0.5:7000, cluster of 3, redis 7.0.15".
func targetText(t experiment.ComparedTarget) string {
	facts := []string{t.Address, t.Label()}
	if t.Kind == experiment.Proxy && t.Process != "" {
		facts[1] = "proxy " + t.Process
	}
	switch {
	case t.Server != "" && t.Kind == experiment.Proxy:
		facts = append(facts, t.Server+" behind it")
	case t.Server != "":
		facts = append(facts, t.Server)
	case t.Kind == experiment.Unknown:
		facts = append(facts, "answers no INFO: a proxy, or a user without the right to it")
	}
	return strings.Join(facts, ", ")
}

// targetCell is what a row says of a target.
type targetCell struct {
	text   string
	colour layout.Paint
}

// targetRow is a row of the table; one without a cell that says anything is left out. The head of others has no cell.
type targetRow struct {
	label string
	cell  func(experiment.Compared) targetCell
}

const (
	targetLabel = 14 // columns of the labels
	targetGap   = 2  // between the columns of two targets
	nothing     = "-"
	mostShown   = 9.99 // of an end of an interval, as a share: beyond it only noise was measured
)

// targetsTable prints as many columns as fit, and the others below.
func (p *page) targetsTable(s *experiment.Targets) {
	rows := targetRows(s)
	cells := make([][]targetCell, len(s.Targets)) // by target and row
	widths := make([]int, len(s.Targets))
	for i, t := range s.Targets {
		for _, r := range rows {
			c := targetCell{}
			if r.cell != nil {
				c = r.cell(t)
			}
			c.text = p.Text(c.text)
			cells[i] = append(cells[i], c)
			widths[i] = max(widths[i], layout.Width(c.text)+targetGap)
		}
	}
	for from := 0; from < len(widths); {
		to, width := from+1, targetLabel+widths[from]
		for to < len(widths) && width+widths[to] <= p.Style.Width {
			width += widths[to]
			to++
		}
		p.Gap()
		for n, r := range rows {
			if r.cell == nil {
				p.Line(r.label)
			} else {
				p.targetRow(r.label, cells[from:to], widths[from:to], n)
			}
		}
		from = to
	}
}

// targetRow prints a row of some targets, unless none of them has anything in it.
func (p *page) targetRow(label string, cells [][]targetCell, widths []int, n int) {
	line, said := layout.Pad(label, targetLabel), false
	for i, column := range cells {
		c := column[n]
		said = said || c.text != "" && c.text != nothing
		line += strings.Repeat(" ", max(0, widths[i]-layout.Width(c.text))) + p.In(c.colour, c.text)
	}
	if said {
		p.Line(line)
	}
}

// estimateOf is a number of a target; nil: there is none.
type estimateOf func(experiment.Compared) *experiment.Estimate

// ofChange is an estimate of what changes against the first target.
func ofChange(of func(*experiment.Changes) *experiment.Estimate) estimateOf {
	return func(t experiment.Compared) *experiment.Estimate {
		if t.Change == nil {
			return nil
		}
		return of(t.Change)
	}
}

func targetRows(s *experiment.Targets) []targetRow {
	rate := ofChange(func(c *experiment.Changes) *experiment.Estimate { return &c.RequestsPerSecond })
	half := ofChange(func(c *experiment.Changes) *experiment.Estimate { return &c.P50Ns })
	tail := ofChange(func(c *experiment.Changes) *experiment.Estimate { return &c.P99Ns })
	latency := func(v float64) string { return format.Duration(int64(v)) }
	against := "  against " + s.Targets[0].Name
	rows := []targetRow{
		{"", func(t experiment.Compared) targetCell {
			return targetCell{t.Name + " " + t.Target.Label(), layout.Bold}
		}},
		{"calls/s", estimateCell(func(t experiment.Compared) *experiment.Estimate { return t.RequestsPerSecond },
			format.Thousands[float64])},
		{against, changeCell(rate, true)},
		{"  per node", perNodeCell},
		{"p50", estimateCell(func(t experiment.Compared) *experiment.Estimate { return t.P50Ns }, latency)},
		{against, changeCell(half, false)},
		{"p99", estimateCell(func(t experiment.Compared) *experiment.Estimate { return t.P99Ns }, latency)},
		{against, changeCell(tail, false)},
		{"errors", errorCell},
		{"CPU per call", nil},
		{"  generator", estimateCell(func(t experiment.Compared) *experiment.Estimate { return t.GeneratorCPU },
			microseconds)},
		{"  proxy", cpuCell(func(t experiment.Compared) *experiment.Estimate { return t.ProxyCPU }, isProxy)},
		{"  servers", cpuCell(func(t experiment.Compared) *experiment.Estimate { return t.ServerCPU },
			func(experiment.ComparedTarget) bool { return true })},
		{"limited by", limitCell},
		{"  in rounds", limitedRoundsCell},
		{"down in", downCell},
	}
	if s.Open { // its rate is what was asked for
		return slices.Delete(rows, 2, 4)
	}
	return slices.Delete(rows, 5, 6) // of a closed loop p50 says what calls/s say
}

func isProxy(t experiment.ComparedTarget) bool { return t.Kind == experiment.Proxy }

// microseconds per call are seconds per million calls.
func microseconds(v float64) string { return format.Duration(int64(v * 1e3)) }

// estimateCell is "104 000 ±1.2 %": the larger side of the interval.
func estimateCell(of estimateOf, text func(float64) string) func(experiment.Compared) targetCell {
	return func(t experiment.Compared) targetCell {
		e := of(t)
		if e == nil {
			return targetCell{nothing, layout.None}
		}
		if e.Low == nil || e.High == nil || e.Value == 0 {
			return targetCell{text(e.Value), layout.None}
		}
		share := side(*e) / e.Value
		if share > mostShown {
			return targetCell{text(e.Value) + " ± more", layout.None}
		}
		return targetCell{text(e.Value) + " ±" + format.Percent(share), layout.None}
	}
}

// side is the larger distance from the estimate to an end of its interval, which is known.
func side(e experiment.Estimate) float64 { return max(*e.High-e.Value, e.Value-*e.Low) }

// cpuCell is a CPU time, or that it was not seen.
func cpuCell(of estimateOf, has func(experiment.ComparedTarget) bool) func(experiment.Compared) targetCell {
	return func(t experiment.Compared) targetCell {
		if of(t) == nil && has(t.Target) && len(t.Runs) > 0 {
			return targetCell{"not seen", layout.Dim}
		}
		return estimateCell(of, microseconds)(t)
	}
}

// changeCell is "-31 % ±2.0": points of percent. It has a colour where the interval is on one side of 0.
func changeCell(of estimateOf, higherIsBetter bool) func(experiment.Compared) targetCell {
	return func(t experiment.Compared) targetCell {
		e := of(t)
		switch {
		case e == nil:
			return targetCell{nothing, layout.None}
		case e.Low == nil || e.High == nil:
			return targetCell{points(e.Value, "%+") + " %", layout.None}
		}
		c := targetCell{shareText(*e, "%+"), layout.None}
		switch {
		case *e.Low <= 0 && *e.High >= 0:
		case (e.Value > 0) == higherIsBetter:
			c.colour = layout.Calm
		default:
			c.colour = layout.Alarm
		}
		return c
	}
}

// shareText is "-31 % ±2.0", and the interval alone where it is wide and has a long tail on one side.
func shareText(e experiment.Estimate, verb string) string {
	larger, smaller := side(e), min(*e.High-e.Value, e.Value-*e.Low)
	switch {
	case larger < 0.1 || larger < 1.25*smaller:
		return points(e.Value, verb) + " % ±" + points(larger, "%")
	case *e.High > mostShown:
		return points(*e.Low, verb) + " % to more"
	}
	return points(*e.Low, verb) + " to " + points(*e.High, verb) + " %"
}

// points is a share in percent, with a digit behind the point below ten.
func points(share float64, verb string) string {
	if math.Abs(share) < 0.0995 {
		return fmt.Sprintf(verb+".1f", math.Round(share*1000)/10+0) // + 0: not -0.0
	}
	return fmt.Sprintf(verb+".0f", share*100)
}

func perNodeCell(t experiment.Compared) targetCell {
	e := t.PerNode
	switch {
	case e == nil:
		return targetCell{nothing, layout.None}
	case e.Low == nil || e.High == nil:
		return targetCell{points(e.Value, "%") + " %", layout.None}
	}
	return targetCell{shareText(*e, "%"), layout.None}
}

func errorCell(t experiment.Compared) targetCell {
	if t.ErrorShare == 0 {
		return targetCell{nothing, layout.None}
	}
	return targetCell{format.Percent(t.ErrorShare), layout.Alarm}
}

func limitCell(t experiment.Compared) targetCell {
	colour := layout.None
	if t.GeneratorLimited || t.LimitedBy == bottleneck.ByGeneratorCPU {
		colour = layout.Alarm
	}
	return targetCell{t.LimitedBy, colour}
}

func limitedRoundsCell(t experiment.Compared) targetCell {
	if len(t.Runs) == 0 {
		return targetCell{nothing, layout.None}
	}
	return targetCell{fmt.Sprintf("%d of %d", t.LimitedRounds, len(t.Runs)), layout.None}
}

func downCell(t experiment.Compared) targetCell {
	if len(t.Failures) == 0 {
		return targetCell{nothing, layout.None}
	}
	return targetCell{fmt.Sprintf("%d of %d", len(t.Failures), len(t.Failures)+len(t.Runs)), layout.Alarm}
}

// targetLimits says in a sentence for each target what limited it, and why it failed.
func (p *page) targetLimits(all []experiment.Compared) {
	p.Gap()
	for _, t := range all {
		if t.Sentence != "" {
			p.Paragraph(t.Name+"  ", "   ", t.LimitedBy+": "+t.Sentence, layout.Dim)
		}
		if down := downText(t); down != "" {
			p.Paragraph(t.Name+"  ", "   ", down, layout.Alarm)
		}
	}
}

// downText says in how many rounds a target was down, and why; empty: in none.
func downText(t experiment.Compared) string {
	n := len(t.Failures)
	if n == 0 {
		return ""
	}
	last := t.Failures[n-1]
	return fmt.Sprintf("down in %s of %d, the last time in round %d: %s", format.Count(n, "round"), n+len(t.Runs),
		last.Round, layout.OneLine(last.Error))
}
