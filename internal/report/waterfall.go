package report

import (
	"fmt"
	"io"
	"math"

	"slowpath/internal/diagnose/verdict"
	"slowpath/internal/format"
	"slowpath/internal/report/layout"
)

const (
	maxWorst  = 3
	numbers   = 2 + timeWidth + 2 + 2 + timeWidth + 2 // columns of a row beside its bar and its label
	minSpan   = 16
	minLabel  = 24 // columns; a state with the beginning and the end of its culprit
	maxSpan   = 70
	longLabel = 60
	// minCulprit is the least room in which the name of a culprit says anything.
	minCulprit = 8
	shorter    = " shorter"
)

// worst shows the slowest call of each stall as a waterfall of its segments.
func (p *page) worst(d verdict.Diagnosis) {
	if len(d.Worst) == 0 {
		return
	}
	p.Section(worstTitle(d))
	p.waterfalls(d.Worst[:min(len(d.Worst), maxWorst)])
}

// Waterfall writes one call with a line for each of its segments: when it began, its bar on the call's scale, how long
// it took, and what it was.
func Waterfall(w io.Writer, c verdict.Worst, s layout.Style) error {
	p := newPage(s)
	p.waterfalls([]verdict.Worst{c})
	return p.To(w, "a call")
}

func (p *page) waterfalls(calls []verdict.Worst) {
	all := make([][]row, len(calls))
	label := 0
	for i, c := range calls {
		all[i] = rows(c)
		for _, r := range all[i] {
			label = max(label, layout.Width(p.label(r, math.MaxInt)))
		}
	}
	room := p.Style.Width - numbers
	bars := min(maxSpan, max(minSpan, min(room/3, room-minLabel), room-min(label, longLabel)))
	p.Line(p.In(layout.Dim, p.Shorten("  "+layout.PadLeft("from", timeWidth)+"  "+layout.Pad("", bars)+"  "+
		layout.PadLeft("took", timeWidth)+"  where", p.Style.Width)))
	for i, c := range calls {
		if i > 0 {
			p.Gap()
		}
		p.Facts("  ", callFacts(c), layout.Bold)
		if c.SameStall > 0 {
			p.Line("  " + p.In(layout.Dim, "and "+format.Count(c.SameStall, "more call")+" in the same stall"))
		}
		for _, r := range all[i] {
			p.row(r, c, bars, room-bars)
		}
	}
}

// worstTitle says where the slowest call of all is not among those that are shown: not all slow calls were recorded one
// by one, or it took long on a path where that is not slow.
func worstTitle(d verdict.Diagnosis) string {
	shown, all := int64(0), int64(0)
	for _, c := range d.Worst {
		shown = max(shown, c.Ns-c.OwnDelayNs)
	}
	for _, of := range d.Populations {
		all = max(all, of.MaxNs)
	}
	title := "The worst calls, one of each stall"
	switch few := len(d.Worst) == 1; {
	case shown < all && few:
		title = "The worst slow call that was recorded"
	case shown < all:
		title = "The worst slow calls that were recorded, one of each stall"
	case few:
		title = "The worst call"
	}
	return title
}

func callFacts(c verdict.Worst) []string {
	out := []string{c.Time.UTC().Format("15:04:05.000 UTC")}
	for _, s := range []string{c.Op, c.Conn, c.Client, c.Node} {
		if s != "" {
			out = append(out, s)
		}
	}
	took := format.Duration(c.Ns - c.OwnDelayNs)
	if all := format.Duration(c.Ns); all != took {
		took += " (" + all + " with slowpath's own wait for a CPU)"
	}
	return append(out, took)
}

// row is one line: when it began, its bar on the call's scale, how long it took, what it was.
func (p *page) row(r row, c verdict.Worst, bars, label int) {
	total := float64(max(c.Ns, 1))
	b := p.span(float64(r.fromNs)/total, float64(r.toNs)/total, bars)
	p.Line("  " + p.length(r.fromNs) + "  " + p.In(actorPaint(r.actor), b) + layout.Pad("", bars-layout.Width(b)) +
		"  " + p.length(r.ns()) + "  " + p.label(r, label))
}

// label says what a row was, in at most width columns: the culprit is shortened first.
func (p *page) label(r row, width int) string {
	name, more := p.Text(stateName(r.actor, r.state)), ""
	if r.others > 0 {
		more = fmt.Sprintf(" +%d", r.others)
		if layout.Width(name)+layout.Width(more+shorter) <= width {
			more += shorter
		}
	}
	culprit := p.Text(r.culprit)
	if room := width - layout.Width(name) - layout.Width(more) - 1; culprit != "" && room >= minCulprit {
		name += " " + p.Shorten(culprit, room)
	}
	return p.Shorten(name+more, width)
}
