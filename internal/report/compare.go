package report

import (
	"fmt"
	"io"

	"slowpath/internal/diagnose/compare"
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
	for _, t := range ComparedTables(c) {
		p.comparedTable(t)
	}
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
	p.Noted(c, row, c, note)
}

func (p *page) comparedTable(t ComparedTable) {
	if t.Title == "" {
		p.Gap()
		p.comparedRow(layout.Dim, "", "BEFORE", "AFTER", "")
	} else {
		p.Section(t.Title)
	}
	for _, r := range t.Rows {
		p.comparedRow(map[string]layout.Paint{compare.Better: layout.Calm, compare.Worse: layout.Alarm}[r.Change],
			r.Name, r.Before, r.After, r.Note)
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
