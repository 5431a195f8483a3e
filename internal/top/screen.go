package top

import (
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"slowpath/internal/report/layout"
)

// The least terminal that is drawn for; a smaller one shows a part of that.
const (
	LeastWidth  = 40
	LeastHeight = 16
)

// selected is how the row under the cursor is painted: reversed.
const selected layout.Paint = "7"

// screen lays out parts of a screen. All texts of others pass p.Text.
type screen struct{ p *layout.Page }

func newScreen(s layout.Style, width int) *screen {
	s.Width = max(width, LeastWidth)
	return &screen{layout.New(s)}
}

// style is that of a part of the screen.
func (s *screen) style(width int) layout.Style {
	style := s.p.Style
	style.Width = width
	return style
}

func decimal[N ~int | ~int64 | ~uint64](n N) string { return strconv.FormatInt(int64(n), 10) }

// linesOf are the lines of a text that a report has written.
func linesOf(text string) []string {
	text = strings.TrimRight(text, "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// whole breaks lines that are longer than a width: of a command that is to be copied nothing may be missing.
func whole(lines []string, width int) (out []string) {
	for _, l := range lines {
		out = append(out, strings.Split(ansi.Hardwrap(l, width, true), "\n")...)
	}
	return out
}

// cut shortens a line that may be painted to a width.
func cut(line string, width int) string {
	if lipgloss.Width(line) <= width {
		return line
	}
	return lipgloss.NewStyle().MaxWidth(width).Render(line)
}

// block makes lines exactly so many, of at most so many columns.
func block(lines []string, width, height int) []string {
	out := make([]string, height)
	for i := range min(height, len(lines)) {
		out[i] = cut(lines[i], width)
	}
	return out
}

// beside puts blocks of the same height side by side, with two columns between.
func beside(left []string, leftWidth int, right []string) []string {
	padded := lipgloss.NewStyle().Width(leftWidth).Render(strings.Join(left, "\n"))
	joined := lipgloss.JoinHorizontal(lipgloss.Top, padded, gapColumn(len(right)), strings.Join(right, "\n"))
	return strings.Split(joined, "\n")
}

// gap is between columns.
const gap = 2

func gapColumn(height int) string {
	return strings.TrimSuffix(strings.Repeat(strings.Repeat(" ", gap)+"\n", height), "\n")
}

// ends is a line with one text at its begin and one at its end, which is left out where there is no room for it.
func (s *screen) ends(left, right string, width int, c layout.Paint) string {
	room := width - layout.Width(right) - 1
	if room < layout.Width(left)/2 {
		return s.p.In(c, s.p.Shorten(left, width))
	}
	return s.p.In(c, layout.Pad(s.p.Shorten(left, room), room)+" "+right)
}

// column is one of a table.
type column struct {
	head  string
	right bool // numbers
	flex  bool // shortened where there is no room
	drop  int  // left out where there is no room: the highest first; 0: never
}

// leastFlex is the least room in which a name says anything.
const leastFlex = 14

// marker is how many columns are before a row, for the sign of the one under the cursor.
const marker = 2

// table lays rows out in columns of a width, their heads first. Columns are left out, and then names shortened, where
// there is no room. marked is the row under the cursor, -1 for none.
func (s *screen) table(width int, columns []column, rows [][]string, marked int) []string {
	lines := s.unmarked(width-marker, columns, rows)
	for n, l := range lines {
		if n > 0 && n-1 == marked {
			lines[n] = s.p.In(selected, "> "+layout.Pad(l, max(0, width-marker)))
		} else {
			lines[n] = "  " + l
		}
	}
	return lines
}

// unmarked is a table without a cursor.
func (s *screen) unmarked(width int, columns []column, rows [][]string) []string {
	keep, widths := s.columnWidths(width, columns, rows)
	head := make([]string, len(columns))
	for i, c := range columns {
		head[i] = c.head
	}
	line := func(cells []string) string {
		var parts []string
		for _, i := range keep {
			text := s.p.Shorten(cells[i], widths[i])
			if columns[i].right {
				text = layout.PadLeft(text, widths[i])
			} else {
				text = layout.Pad(text, widths[i])
			}
			parts = append(parts, text)
		}
		return strings.TrimRight(strings.Join(parts, strings.Repeat(" ", gap)), " ")
	}
	lines := []string{s.p.In(layout.Dim, line(head))}
	for _, row := range rows {
		lines = append(lines, line(row))
	}
	return lines
}

// columnWidths chooses which columns there is room for, and how wide they are.
func (s *screen) columnWidths(width int, columns []column, rows [][]string) (keep []int, widths []int) {
	natural := make([]int, len(columns))
	for i, c := range columns {
		natural[i] = layout.Width(c.head)
		for _, row := range rows {
			natural[i] = max(natural[i], layout.Width(row[i]))
		}
	}
	for i := range columns {
		keep = append(keep, i)
	}
	for {
		fixed, least, dropped := gap*(len(keep)-1), 0, -1
		for n, i := range keep {
			if columns[i].flex {
				least += min(natural[i], leastFlex)
			} else {
				fixed += natural[i]
			}
			if columns[i].drop > 0 && (dropped < 0 || columns[i].drop > columns[keep[dropped]].drop) {
				dropped = n
			}
		}
		if fixed+least <= width || dropped < 0 {
			return keep, shareWidth(width-fixed, columns, keep, natural)
		}
		keep = append(keep[:dropped:dropped], keep[dropped+1:]...)
	}
}

// shareWidth gives the flexible columns the room that is left: each what it needs, or its part.
func shareWidth(room int, columns []column, keep, natural []int) []int {
	widths := append([]int(nil), natural...)
	var flexible []int
	for _, i := range keep {
		if columns[i].flex {
			flexible = append(flexible, i)
		}
	}
	for len(flexible) > 0 {
		part, rest := max(1, room/len(flexible)), flexible[:0:0]
		for _, i := range flexible {
			if natural[i] <= part {
				room -= natural[i]
			} else {
				rest = append(rest, i)
			}
		}
		if len(rest) == len(flexible) {
			for n, i := range rest {
				widths[i] = part
				if n == len(rest)-1 {
					widths[i] = max(1, room-part*(len(rest)-1))
				}
			}
			return widths
		}
		flexible = rest
	}
	return widths
}
