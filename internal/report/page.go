package report

import (
	"bytes"
	"strings"
)

// proseWidth is the longest line of running text, however wide the terminal: the eye loses its way back in longer ones.
const proseWidth = 116

// page takes the lines of a report.
type page struct {
	buf   bytes.Buffer
	style Style
}

func newPage(s Style) *page {
	if s.Width == 0 {
		s.Width = usualWidth
	}
	s.Width = max(s.Width, minWidth)
	return &page{style: s}
}

func (p *page) line(s string) {
	p.buf.WriteString(strings.TrimRight(s, " "))
	p.buf.WriteByte('\n')
}

// section starts a section after an empty line.
func (p *page) section(title string) {
	p.gap()
	p.paragraph("", "", title, bold)
}

// gap is the empty line between two parts.
func (p *page) gap() {
	if p.buf.Len() > 0 {
		p.line("")
	}
}

// paragraph prints a text, wrapped: its first line after first, the others after rest, which is as wide.
func (p *page) paragraph(first, rest, text string, c paint) {
	width := min(p.style.Width, proseWidth) - columns(first)
	for i, l := range wrap(p.text(text), width) {
		lead := rest
		if i == 0 {
			lead = first
		}
		p.line(lead + p.in(c, l))
	}
}

// piece prints a command or a link in one line, however long.
func (p *page) piece(lead, text string, c paint) { p.line(lead + p.in(c, p.whole(text))) }

// facts prints short facts in a row, and breaks lines only between them where it can.
func (p *page) facts(lead string, facts []string, c paint) {
	width := p.style.Width - columns(lead)
	sep := " " + p.text("·") + " "
	row := ""
	flush := func() {
		if row != "" {
			p.line(lead + p.in(c, row))
		}
		row = ""
	}
	for _, f := range facts {
		f = p.text(f)
		if row != "" && columns(row)+columns(sep)+columns(f) <= width {
			row += sep + f
			continue
		}
		flush()
		lines := wrap(f, width)
		for i, l := range lines {
			if row = l; i < len(lines)-1 {
				flush()
			}
		}
	}
	flush()
}
