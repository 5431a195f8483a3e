package report

import (
	"fmt"
	"slices"
	"strings"

	"slowpath/internal/diagnose/facts"
	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/format"
	"slowpath/internal/report/layout"
)

const (
	matters      = 0.1 // of the lost time: two states with as much make a table worth its lines
	shownOverlap = 0.01
	columnGap    = 2
	// wideLabels is the least width of a page on which rows are named, and not only numbered.
	wideLabels = 72
)

// lostIn are the states in which callers lost time, in the form of an account: the same time as the findings' shares.
func lostIn(l verdict.LostTime) (out []verdict.State) {
	all := lostNs(l)
	for _, s := range l.States {
		out = append(out, verdict.State{Actor: s.Actor, State: s.State, Ns: s.Ns, Share: lostPart(s.Ns, all)})
	}
	return out
}

func lostNs(l verdict.LostTime) (all int64) {
	for _, s := range l.States {
		all += s.Ns
	}
	return all
}

func lostPart(ns, of int64) float64 { return layout.Fraction(float64(ns) / float64(max(of, 1))) }

// elsewhereNames are the losses outside of slow calls.
var elsewhereNames = map[facts.LossKind]string{
	facts.LostInCalls: "calls not slow", facts.LostOpening: "opening connections",
	facts.LostWaiting: "waiting to send", facts.LostSilent: "no reply",
	facts.LostAcks: "waiting for acks",
}

const lostTitle = "Which finding explains which part of the lost time"

// hasLostTable reports whether several findings, or several states, make a table worth its lines. One finding in one
// state is in the bars already.
func hasLostTable(d verdict.Diagnosis) bool {
	l, states := d.LostTime, 0
	for _, s := range l.States {
		if lostPart(s.Ns, lostNs(l)) >= matters {
			states++
		}
	}
	return len(l.Causes) == len(d.Findings)+1 && (len(d.Findings) > 1 || len(d.Findings) == 1 && states > 1)
}

// lostTime shows which finding explains which part of the lost time.
func (p *page) lostTime(d verdict.Diagnosis) {
	if !hasLostTable(d) {
		return
	}
	l := d.LostTime
	p.Section(lostTitle)
	t := p.lostTable(l)
	for i, row := range t.rows {
		paint := layout.None
		if i < heads {
			paint = layout.Dim
		}
		line := "  " + layout.Pad(row[0], t.widths[0])
		for k, cell := range row[1:] {
			line += strings.Repeat(" ", columnGap) + layout.PadLeft(cell, t.widths[k+1])
		}
		if i < heads && strings.TrimSpace(line) == "" {
			continue // each name has one word
		}
		p.Line(p.In(paint, line))
	}
	for _, note := range lostNotes(l) {
		p.Paragraph("  ", "  ", note, layout.Dim)
	}
}

// heads is the number of lines with the names of the columns.
const heads = 2

type lostTable struct {
	rows   [][]string // first the heads; of each the first cell is its label
	widths []int
}

// lostTable has as many columns as fit: the largest, one for all others, and the sum.
func (p *page) lostTable(l verdict.LostTime) lostTable {
	shown := len(l.States)
	for shown > 1 && lostPart(l.States[shown-1].Ns, lostNs(l)) < minShown {
		shown--
	}
	for {
		t := p.lostColumns(l, shown)
		width := columnGap * len(t.widths)
		for _, w := range t.widths {
			width += w
		}
		if width <= p.Style.Width || shown == 0 {
			return t
		}
		shown--
	}
}

// lostColumns is the table with some states.
func (p *page) lostColumns(l verdict.LostTime, shown int) lostTable {
	all := lostNs(l)
	t := lostTable{rows: [][]string{{""}, {""}}}
	for _, s := range l.States[:shown] {
		actor, state := columnName(s)
		t.rows[0], t.rows[1] = append(t.rows[0], p.headText(actor)), append(t.rows[1], p.headText(state))
	}
	if shown < len(l.States) {
		t.rows[0], t.rows[1] = append(t.rows[0], ""), append(t.rows[1], "other")
	}
	t.rows[0], t.rows[1] = append(t.rows[0], ""), append(t.rows[1], "all")
	add := func(label string, cells []int64) {
		row, sum, rest := []string{p.Text(label)}, int64(0), int64(0)
		for i := range l.States {
			ns := int64(0)
			if i < len(cells) { // a damaged file may have less
				ns = cells[i]
			}
			sum += ns
			if i < shown {
				row = append(row, lostShare(ns, all))
			} else {
				rest += ns
			}
		}
		if shown < len(l.States) {
			row = append(row, lostShare(rest, all))
		}
		t.rows = append(t.rows, append(row, lostShare(sum, all)))
	}
	var sums []int64
	for _, s := range l.States {
		sums = append(sums, s.Ns)
	}
	for i, r := range l.Causes {
		add(p.lostLabel(l, i), r.Cells)
	}
	add("all", sums)
	for _, row := range t.rows {
		for k, cell := range row {
			if k == len(t.widths) {
				t.widths = append(t.widths, 0)
			}
			t.widths[k] = max(t.widths[k], layout.Width(cell))
		}
	}
	return t
}

// columnName is the name of a state in two lines.
func columnName(s verdict.LostState) (actor, state string) {
	name := stateName(s.Actor, s.State)
	if first, rest, ok := strings.Cut(name, " "); ok {
		return first, rest
	}
	return "", name
}

// headText is a part of the name of a column.
func (p *page) headText(s string) string {
	const longest = 12 // the longest state of the design has 11
	return p.Shorten(p.Text(s), longest)
}

// lostShare is a share of the lost time in a cell.
func lostShare(ns, all int64) string {
	const least = 0.0005 // less is 0.0 %
	if lostPart(ns, all) < least {
		return "-"
	}
	return format.Percent(lostPart(ns, all))
}

// lostLabel names a row: by the number of its finding, and where there is room by its cause.
func (p *page) lostLabel(l verdict.LostTime, i int) string {
	const longest = 30
	r, wide := l.Causes[i], p.Style.Width >= wideLabels
	if i == len(l.Causes)-1 {
		if wide {
			return "no finding"
		}
		return "none"
	}
	label := fmt.Sprint(i + 1)
	if wide {
		label = p.Shorten(label+" "+p.Text(r.Cause), longest)
	}
	if root := numberOf(l, r.Because); root > 0 {
		label = fmt.Sprintf("%s, in %d", label, root)
	}
	return label
}

// numberOf is the number of the finding of a cause, 0 where there is none.
func numberOf(l verdict.LostTime, id string) int {
	if id == "" {
		return 0
	}
	return slices.IndexFunc(l.Causes, func(r verdict.LostToCause) bool { return r.Cause == id }) + 1
}

// lostNotes say which rows are parts of others, and what overlaps.
func lostNotes(l verdict.LostTime) (notes []string) {
	all := lostNs(l)
	for i, r := range l.Causes {
		if root := numberOf(l, r.Because); root > 0 {
			notes = append(notes, fmt.Sprintf("Finding %d is a consequence of finding %d, and a part of its row.", i+1,
				root))
		}
		for _, o := range r.Overlaps {
			if at, share := numberOf(l, o.Cause), lostPart(o.Ns, all); at > 0 && share >= shownOverlap {
				notes = append(notes, fmt.Sprintf("Findings %d and %d overlap: both explain %s of the lost time, "+
					"which counts for finding %d.", min(at, i+1), max(at, i+1), format.Percent(share), at))
			}
		}
	}
	return notes
}
