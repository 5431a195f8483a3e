package report

import (
	"fmt"
	"strings"

	"slowpath/internal/diagnose/remedy"
	"slowpath/internal/format"
	"slowpath/internal/report/layout"
)

// fixSteps shows the steps of a fix: what to do, the command to copy, how it is taken back, what it risks, and what the
// lab measured of it.
func (p *page) fixSteps(steps []remedy.Step) {
	for i, s := range steps {
		number := fmt.Sprintf("     %d. ", i+1)
		if s.Or && i > 0 {
			number = fmt.Sprintf("  or %d. ", i+1)
		}
		lead := strings.Repeat(" ", len(number))
		if text := s.Sentence(); text != "" {
			if s.Complete() {
				text += ":"
			}
			p.Paragraph(number, lead, layout.Bound(text, layout.MaxText), layout.None)
		}
		if s.Command != "" {
			paint := layout.Copied
			if !s.Complete() {
				paint = layout.None
			}
			p.Piece(lead+"  ", s.Command, paint)
		}
		if s.Kind == remedy.Command && s.Undo != "" {
			p.Piece(lead+"undo: ", s.Undo, layout.Dim)
		}
		p.Facts(lead, remarks(s), layout.Dim)
	}
}

// remarks are what else is to be known of a step.
func remarks(s remedy.Step) (out []string) {
	if len(s.Asks) > 0 {
		out = append(out, "fill in "+strings.Join(s.Asks, " and "))
	}
	undo := s.Undo
	if s.Kind == remedy.Command {
		undo = "" // it has a line of its own
	}
	for _, r := range []struct{ label, text string }{
		{"where: ", s.Where},
		{"restart ", s.Restart},
		{"from ", s.Since},
		{"risk: ", s.Risk},
		{"undo: ", undo},
	} {
		if r.text != "" {
			out = append(out, r.label+r.text)
		}
	}
	return append(out, proven(s.Proof))
}

// tried says in a few words whether the lab has proven a step.
func tried(p *remedy.Proof) string {
	switch {
	case p == nil:
		return "not tried in the lab"
	case !p.Proven:
		return "not proven in the lab"
	}
	return "proven in the lab"
}

// proven says what the lab measured of a step.
func proven(p *remedy.Proof) string {
	switch {
	case p == nil:
		return "not tried in the lab"
	case !p.Proven:
		return "tried in the lab, not proven: " + p.Why
	}
	return fmt.Sprintf("proven in the lab: all callers together lost %s per second before, %s after",
		lost(p.LostBefore), lost(p.LostAfter))
}

// lost is time in seconds as text.
func lost(seconds float64) string { return format.Brief(int64(seconds * 1e9)) }
