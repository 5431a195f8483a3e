package layout

import (
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// screen measures text. It does not depend on the locale, so that the same report has the same lines everywhere:
// characters whose width depends on the font, such as →, take one column.
var screen = &runewidth.Condition{StrictEmojiNeutral: true}

// Width is how many columns a text takes on the terminal.
func Width(s string) int { return screen.StringWidth(s) }

// Pad adds spaces after a text.
func Pad(s string, width int) string { return s + strings.Repeat(" ", max(0, width-Width(s))) }

// PadLeft adds spaces before a text.
func PadLeft(s string, width int) string { return strings.Repeat(" ", max(0, width-Width(s))) + s }

// head is the longest beginning of s that fits the width, and the rest. A character and its accents stay together,
// unless they are wider than that by themselves: the width of a text that others chose is a bound.
func head(s string, width int) (string, string) {
	begin := screen.Truncate(s, max(0, width), "")
	if begin == "" {
		for i, c := range s {
			if end := i + utf8.RuneLen(c); Width(s[:end]) <= width {
				begin = s[:end]
				continue
			}
			break
		}
	}
	return begin, s[len(begin):]
}

// Shorten cuts a text to width columns, and marks that with the page's dots.
func (p *Page) Shorten(s string, width int) string { return Shorten(s, width, p.Text("…")) }

// Shorten cuts a text to width columns, and marks that with dots: of a path the end says most, of other texts the
// beginning.
func Shorten(s string, width int, dots string) string {
	switch {
	case Width(s) <= width:
		return s
	case width <= Width(dots):
		begin, _ := head(s, width)
		return begin
	case strings.HasPrefix(s, "/"):
		return screen.TruncatePrefix(s, width, dots)
	}
	return screen.Truncate(s, width, dots)
}
