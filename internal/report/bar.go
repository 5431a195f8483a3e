package report

import (
	"math"
	"strings"

	"slowpath/internal/report/layout"
)

// bar is a bar of a share of width columns, at least a hair of it, as plain text without padding. Block characters come
// in eighths.
func (p *page) bar(share float64, width int) string {
	eighths := max(1, int(math.Round(layout.Fraction(share)*float64(width)*8)))
	if !p.Style.Unicode {
		return strings.Repeat("#", min(width, max(1, (eighths+4)/8)))
	}
	s := strings.Repeat("█", eighths/8)
	if e := eighths % 8; e > 0 {
		s += string([]rune("▏▎▍▌▋▊▉")[e-1])
	}
	return s
}

// span is a bar from one fraction of the width to another, with the space before it: a segment on its call's scale.
func (p *page) span(from, to float64, width int) string {
	cell, thin := "█", "▏"
	if !p.Style.Unicode {
		cell, thin = "#", "|"
	}
	a := int(math.Round(layout.Fraction(from) * float64(width)))
	b := int(math.Round(layout.Fraction(to) * float64(width)))
	if b <= a {
		return strings.Repeat(" ", min(a, width-1)) + thin
	}
	return strings.Repeat(" ", a) + strings.Repeat(cell, b-a)
}
