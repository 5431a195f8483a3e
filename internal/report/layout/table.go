package layout

import "strings"

// Table prints rows of cells below their heads in columns, where they fit the width, else folded.
func (p *Page) Table(head []string, rows [][]string) {
	const gap = 2
	widths := make([]int, len(head))
	for _, row := range append([][]string{head}, rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], Width(p.Text(cell)))
		}
	}
	whole := gap * (len(head) - 1)
	for _, w := range widths {
		whole += w
	}
	if whole > p.Style.Width {
		p.Folded(head, rows)
		return
	}
	for n, row := range append([][]string{head}, rows...) {
		var cells []string
		for i, cell := range row {
			cells = append(cells, Pad(p.Text(cell), widths[i]))
		}
		paint := None
		if n == 0 {
			paint = Dim
		}
		p.Line(p.In(paint, strings.TrimRight(strings.Join(cells, strings.Repeat(" ", gap)), " ")))
	}
}

// Folded prints each row as its first cell, and below it the others, each after its head. Lines break between cells.
func (p *Page) Folded(head []string, rows [][]string) {
	for _, row := range rows {
		name := strings.TrimLeft(row[0], " ")
		lead := row[0][:len(row[0])-len(name)]
		p.Paragraph(lead, lead, name, None)
		var facts []string
		for i, cell := range row[1:] {
			if cell != "" {
				facts = append(facts, strings.ToLower(head[i+1])+" "+cell)
			}
		}
		p.Facts(lead+"  ", facts, None)
	}
}

// Bytes is what the page holds.
func (p *Page) Bytes() []byte { return p.buf.Bytes() }
