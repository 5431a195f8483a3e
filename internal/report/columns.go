package report

import (
	"strings"
	"unicode"
)

// wide are the ranges of characters that take two columns (Unicode TR 11, the classes W and F, rounded to blocks).
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x1100, 0x115f, 1},
		{0x231a, 0x231b, 1},
		{0x2329, 0x232a, 1},
		{0x23e9, 0x23f3, 1},
		{0x25fd, 0x25fe, 1},
		{0x2614, 0x27bf, 1},
		{0x2b1b, 0x2b55, 1},
		{0x2e80, 0x303e, 1},
		{0x3041, 0xa4cf, 1},
		{0xa960, 0xa97f, 1},
		{0xac00, 0xd7a3, 1},
		{0xf900, 0xfaff, 1},
		{0xfe10, 0xfe6f, 1},
		{0xff01, 0xff60, 1},
		{0xffe0, 0xffe6, 1},
	},
	R32: []unicode.Range32{{0x16fe0, 0x18cff, 1}, {0x1aff0, 0x1b2ff, 1}, {0x1f000, 0x1faff, 1}, {0x20000, 0x3fffd, 1}},
}

func runeColumns(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}

// columns is the width of a text on the terminal.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

func pad(s string, width int) string { return s + strings.Repeat(" ", max(0, width-columns(s))) }

func padLeft(s string, width int) string { return strings.Repeat(" ", max(0, width-columns(s))) + s }

// head is the longest beginning of s that fits the width, and the rest.
func head(s string, width int) (string, string) {
	n := 0
	for i, r := range s {
		if n += runeColumns(r); n > width {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// tail is the longest end of s that fits the width.
func tail(s string, width int) string {
	rs := []rune(s)
	i, n := len(rs), 0
	for i > 0 && n+runeColumns(rs[i-1]) <= width {
		i--
		n += runeColumns(rs[i])
	}
	return string(rs[i:])
}

// shorten cuts a text to width columns: of a path the end says most, of other texts the beginning.
func (p *page) shorten(s string, width int) string {
	if columns(s) <= width {
		return s
	}
	dots := p.text("…")
	room := width - columns(dots)
	if room < 1 {
		begin, _ := head(s, max(0, width))
		return begin
	}
	if strings.HasPrefix(s, "/") {
		return dots + tail(s, room)
	}
	begin, _ := head(s, room)
	return begin + dots
}
