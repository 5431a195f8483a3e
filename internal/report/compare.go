package report

import (
	"fmt"
	"io"

	"slowpath/internal/diagnose/compare"
	"slowpath/internal/format"
	"slowpath/internal/report/layout"
)

// CompareJSON writes the document slowpath.compare/v1.
func CompareJSON(w io.Writer, c compare.Comparison) error { return layout.JSON(w, "the comparison", c) }

// Compare writes a comparison for a person: what changed for callers first, then why.
func Compare(w io.Writer, c compare.Comparison, s layout.Style) error {
	p := newPage(s)
	p.Paragraph("", "", c.Summary, comparedPaint(c.Verdict))
	for _, side := range []struct {
		label string
		watch compare.Watch
	}{{"before", c.Before}, {"after ", c.After}} {
		name := side.watch.Name
		if name != "" {
			name += ": "
		}
		p.Paragraph(side.label+"  ", "        ", fmt.Sprintf("%s%s, %.0f s from %s: %s", name, side.watch.Target,
			side.watch.Seconds, side.watch.Start, side.watch.Summary), layout.None)
	}
	p.comparedMetrics(c.Metrics)
	p.comparedFindings(c.Findings)
	p.comparedStates(c.States)
	p.comparedCallers(c.Callers)
	p.differences("Versions", c.Versions)
	p.differences("Settings", c.Settings)
	return p.To(w, "the comparison")
}

func comparedPaint(verdict string) layout.Paint {
	switch verdict {
	case compare.Better:
		return layout.Calm
	case compare.Worse:
		return layout.Alarm
	case compare.Same:
		return layout.Bold
	}
	return layout.Doubt
}

const comparedWidth = 10 // columns of a value

// comparedLabel are the columns of the name of a row.
func comparedLabel(width int) int { return max(16, min(40, width-2*(comparedWidth+1)-26)) }

func (p *page) comparedRow(c layout.Paint, name, before, after, note string) {
	label := comparedLabel(p.Style.Width)
	row := layout.Pad(p.Shorten(p.Text(name), label), label)
	for _, value := range []string{before, after} {
		row += " " + layout.PadLeft(p.Text(value), comparedWidth)
	}
	p.noted(c, row, c, note)
}

// noted prints a row and a note, beside it where there is room, else below.
func (p *page) noted(ofRow layout.Paint, row string, ofNote layout.Paint, note string) {
	note = p.Text(note)
	switch {
	case note == "":
		p.Line(p.In(ofRow, p.Shorten(row, p.Style.Width)))
	case layout.Width(row)+2+layout.Width(note) <= p.Style.Width:
		p.Line(p.In(ofRow, row) + p.In(ofNote, "  "+note))
	default:
		p.Line(p.In(ofRow, p.Shorten(row, p.Style.Width)))
		p.Paragraph("  ", "  ", note, ofNote)
	}
}

var metricTexts = map[string]string{
	"calls_per_second": "calls per second", "p50_ns": "p50", "p99_ns": "p99", "slow_share": "slow",
	"failed_share": "failed",
}

func (p *page) comparedMetrics(metrics []compare.Metric) {
	if len(metrics) == 0 {
		return
	}
	p.Gap()
	p.comparedRow(layout.Dim, "", "BEFORE", "AFTER", "")
	for _, m := range metrics {
		if m.Name == "failed_share" && m.Before+m.After == 0 {
			continue // as it should be
		}
		text := func(v float64) string {
			switch m.Name {
			case "calls_per_second":
				return format.Rounded(v)
			case "slow_share", "failed_share":
				return format.Percent(v)
			}
			return format.Duration(int64(v))
		}
		note := "no difference shown"
		switch {
		case m.Verdict == compare.Unknown:
			note = "too short to tell"
		case m.Verdict != compare.Same && m.Low != nil && m.High != nil:
			note = shiftText(*m.Change, *m.Low, *m.High)
		case m.Verdict != compare.Same:
			note = m.Verdict
		}
		colour := map[string]layout.Paint{compare.Better: layout.Calm, compare.Worse: layout.Alarm}[m.Verdict]
		if m.Name == "calls_per_second" {
			colour = layout.None
		}
		p.comparedRow(colour, metricTexts[m.Name], text(m.Before), text(m.After), note)
	}
}

// shiftText is a change with its interval: in percent, or in times where it is more than twice.
func shiftText(change, low, high float64) string {
	if change > 1 {
		times := func(change float64) string { return format.Rounded(1 + change) }
		return fmt.Sprintf("%s times (%s to %s)", times(change), times(low), times(high))
	}
	return fmt.Sprintf("%+.0f %% (%+.0f to %+.0f)", 100*change, 100*low, 100*high)
}

func (p *page) comparedFindings(findings []compare.Finding) {
	if len(findings) == 0 {
		return
	}
	p.Section("Findings, by their share of the lost time")
	for _, f := range findings {
		text := func(share float64) string {
			if share == 0 {
				return "-"
			}
			return format.Percent(share)
		}
		colour := map[string]layout.Paint{"gone": layout.Calm, "new": layout.Alarm}[f.Change]
		p.comparedRow(colour, f.Cause, text(f.Before), text(f.After), f.Change)
	}
}

// comparedShown is how many states and callers are listed; the JSON has all.
const comparedShown = 6

func (p *page) comparedStates(states []compare.State) {
	if len(states) == 0 {
		return
	}
	p.Section("Time of slow calls, for each 1 000 calls")
	for _, s := range states[:min(len(states), comparedShown)] {
		p.comparedRow(layout.None, stateName(s.Actor, s.State), format.Duration(int64(s.Before)),
			format.Duration(int64(s.After)), "")
	}
}

func (p *page) comparedCallers(callers []compare.Caller) {
	if len(callers) == 0 {
		return
	}
	p.Section("Callers, calls per second")
	for _, c := range callers[:min(len(callers), comparedShown)] {
		p.comparedRow(layout.None, c.Name, format.Rounded(c.Before), format.Rounded(c.After), "")
	}
}

func (p *page) differences(title string, all []compare.Difference) {
	if len(all) == 0 {
		return
	}
	p.Section(title + " that differ")
	for _, d := range all {
		p.Paragraph("  ", "    ", fmt.Sprintf("%s: %s, before %s", d.Name, orAbsent(d.After), orAbsent(d.Before)),
			layout.None)
	}
}

func orAbsent(s string) string {
	if s == "" {
		return "none"
	}
	return s
}
