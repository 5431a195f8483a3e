// Package layout lays texts out for a terminal: width, wrapping, columns and colour. It makes texts of strangers safe
// to print.
package layout

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// proseWidth is the longest line of running text, however wide the terminal: the eye loses its way back in longer ones.
const proseWidth = 116

// MaxSpots are how many things that could not be seen are listed at most.
const MaxSpots = 12

// Page takes the lines of a text, and lays them out for a terminal. What it is given as text may come from strangers;
// only Line takes it as it is.
type Page struct {
	Style Style // with its defaults
	buf   bytes.Buffer
	heads []string // of the columns of Row or Tabular
}

// New is an empty page.
func New(s Style) *Page {
	if s.Width == 0 {
		s.Width = usualWidth
	}
	s.Width = max(s.Width, minWidth)
	return &Page{Style: s}
}

// Line prints a line of parts that are safe and fit already.
func (p *Page) Line(s string) {
	p.buf.WriteString(strings.TrimRight(s, " "))
	p.buf.WriteByte('\n')
}

// Section starts a section after an empty line.
func (p *Page) Section(title string) {
	p.Gap()
	p.Paragraph("", "", title, Bold)
}

// Gap is the empty line between two parts.
func (p *Page) Gap() {
	if p.buf.Len() > 0 {
		p.Line("")
	}
}

// Paragraph prints a text, wrapped: its first line after first, the others after rest.
func (p *Page) Paragraph(first, rest, text string, c Paint) {
	width := min(p.Style.Width, proseWidth) - max(Width(first), Width(rest))
	for i, l := range Wrap(p.Text(text), width) {
		lead := rest
		if i == 0 {
			lead = first
		}
		p.Line(lead + p.In(c, l))
	}
}

// Piece prints a command or a link in one line, however long.
func (p *Page) Piece(lead, text string, c Paint) { p.Line(lead + p.In(c, p.Whole(text))) }

// Facts prints short facts in a row, and breaks lines only between them where it can.
func (p *Page) Facts(lead string, facts []string, c Paint) {
	width := p.Style.Width - Width(lead)
	sep := " " + p.Text("·") + " "
	row := ""
	flush := func() {
		if row != "" {
			p.Line(lead + p.In(c, row))
		}
		row = ""
	}
	for _, f := range facts {
		f = p.Text(f)
		if row != "" && Width(row)+Width(sep)+Width(f) <= width {
			row += sep + f
			continue
		}
		flush()
		lines := Wrap(f, width)
		for i, l := range lines {
			if row = l; i < len(lines)-1 {
				flush()
			}
		}
	}
	flush()
}

// Heads prints the heads of the columns that Row prints, of the same widths, where these fit.
func (p *Page) Heads(widths []int, heads ...string) {
	p.heads = heads
	if p.fit(widths) {
		p.Row(Dim, widths, heads...)
	}
}

// fit reports whether columns of some widths fit the width of the page.
func (p *Page) fit(widths []int) bool {
	whole := len(widths) - 1
	for _, w := range widths {
		whole += w
	}
	return whole <= p.Style.Width
}

// Row prints columns of the widths below those of Heads; the first to the left. Where they do not fit it is folded.
func (p *Page) Row(c Paint, widths []int, texts ...string) {
	if !p.fit(widths) {
		p.Folded(p.heads, [][]string{texts})
		return
	}
	row := ""
	for i, t := range texts {
		t = p.Text(t)
		if i == 0 {
			row = Pad(p.Shorten(t, widths[0]), widths[0])
			continue
		}
		row += " " + PadLeft(t, widths[i])
	}
	p.Line(p.In(c, row))
}

// More says that a list was cut.
func (p *Page) More(lead string, n int) {
	p.Paragraph(lead, lead, fmt.Sprintf("… and %d more (all with --json)", n), Dim)
}

// Noted prints a row and a note, beside it where there is room, else below.
func (p *Page) Noted(ofRow Paint, row string, ofNote Paint, note string) {
	note = p.Text(note)
	switch {
	case note == "":
		p.Line(p.In(ofRow, p.Shorten(row, p.Style.Width)))
	case Width(row)+2+Width(note) <= p.Style.Width:
		p.Line(p.In(ofRow, row) + p.In(ofNote, "  "+note))
	default:
		p.Line(p.In(ofRow, p.Shorten(row, p.Style.Width)))
		p.Paragraph("  ", "  ", note, ofNote)
	}
}

// To writes the page.
func (p *Page) To(w io.Writer, what string) error {
	if _, err := w.Write(p.buf.Bytes()); err != nil {
		return fmt.Errorf("writing %s: %w", what, err)
	}
	return nil
}
