package report

import (
	"fmt"
	"strings"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/format"
	"slowpath/internal/recording"
	"slowpath/internal/report/layout"
)

// hopColumn is a column of the table of hops.
type hopColumn struct {
	head string
	text func(verdict.Hop) string
}

// hops shows what each hop adds, and first the one that adds most.
func (p *page) hops(hops []verdict.Hop) {
	if len(hops) == 0 {
		return
	}
	p.Section("Hops, as calls pass them")
	for _, h := range hops {
		if h.Summary != "" {
			p.Paragraph("", "", h.Summary, layout.Bold)
		}
	}
	const column, leastName = 8, 20
	columns := []hopColumn{
		{"CALLS", func(h verdict.Hop) string { return format.Thousands(h.Calls) }},
		{"P50", func(h verdict.Hop) string { return format.Duration(h.P50Ns) }},
		{"P99", func(h verdict.Hop) string { return format.Duration(h.P99Ns) }},
		{"ADDS P50", func(h verdict.Hop) string { return format.Duration(h.AddedP50Ns) }},
		{"P99", func(h verdict.Hop) string { return format.Duration(h.AddedP99Ns) }},
		{"LOST", func(h verdict.Hop) string { return format.Percent(h.Share) }},
	}
	// Where the terminal is narrow, the number of calls and their p99 are left out.
	for len(columns) > 3 && p.Style.Width-len(columns)*(column+1) < leastName {
		columns = columns[1:]
	}
	names, name := make([]string, len(hops)), len("HOP")
	for i, h := range hops {
		names[i] = p.Text(fmt.Sprintf("%d %s", i+1, strings.TrimSpace(h.Process+" "+h.Node)))
		name = max(name, layout.Width(names[i]))
	}
	name = min(name, p.Style.Width-len(columns)*(column+1))
	row := []layout.Cell{layout.Left("HOP", name)}
	for _, c := range columns {
		row = append(row, layout.Right(c.head, column))
	}
	p.Tabular(layout.Dim, row...)
	for i, h := range hops {
		row = []layout.Cell{layout.Left(names[i], name)}
		if layout.Width(names[i]) > name {
			p.Line(p.Shorten(names[i], p.Style.Width))
			row[0] = layout.Left("", name)
		}
		for _, c := range columns {
			row = append(row, layout.Right(c.text(h), column))
		}
		p.Tabular(layout.None, row...)
	}
	p.Paragraph("  ", "  ", hopsNote(hops), layout.Dim)
}

// hopsNote says what the columns are.
func hopsNote(hops []verdict.Hop) string {
	of := "all calls, from their arrival at the hop to the reply"
	if hops[0].Source == recording.SourceProbe {
		of = "slowpath's own GETs"
	}
	return "P50, P99: " + of + ". ADDS: how much more than at the next hop. LOST: share of the time that slow calls " +
		"lost, at the hop and on the way to it."
}
