package layout

import "strings"

// Cell is one of a row, with its width.
type Cell struct {
	text  string
	width int
	left  bool
}

// Left is a cell that is aligned to the left.
func Left(text string, width int) Cell { return Cell{text, width, true} }

// Right is a cell that is aligned to the right.
func Right(text string, width int) Cell { return Cell{text, width, false} }

// TabularHeads prints the heads of the rows that follow, which have the same widths.
func (p *Page) TabularHeads(cells ...Cell) {
	p.heads = cellTexts(cells)
	if p.room(cells) {
		p.Tabular(Dim, cells...)
	}
}

// room reports whether cells of their widths fit the page.
func (p *Page) room(cells []Cell) bool {
	whole := len(cells) - 1
	for _, x := range cells {
		whole += x.width
	}
	return whole <= p.Style.Width || p.Style.Width >= roomyWidth
}

// roomyWidth is that from which on the last cell of a row, a list, may be cut.
const roomyWidth = 80

func cellTexts(cells []Cell) (list []string) {
	for _, x := range cells {
		list = append(list, strings.TrimSpace(x.text))
	}
	return list
}

// Tabular prints a row; the last cell is not padded. Where there is no room it is folded.
func (p *Page) Tabular(c Paint, cells ...Cell) {
	if !p.room(cells) {
		p.Folded(p.heads, [][]string{cellTexts(cells)})
		return
	}
	row := ""
	for i, x := range cells {
		text := p.Shorten(p.Text(x.text), x.width)
		if i > 0 {
			row += " "
		}
		if x.left {
			row += Pad(text, x.width)
		} else {
			row += PadLeft(text, x.width)
		}
	}
	p.Line(p.In(c, strings.TrimRight(row, " ")))
}
