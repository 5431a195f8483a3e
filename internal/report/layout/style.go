package layout

import (
	"os"
	"strings"

	"golang.org/x/term"
)

// Style is what the reader's terminal can show.
type Style struct {
	Width   int  // columns; 0 is 80, fewer than 40 are taken as 40
	Color   bool // ANSI colours
	Unicode bool // block characters and µ; otherwise pure ASCII
}

const (
	usualWidth = 80
	minWidth   = 40
)

// StyleOf is the style for a file: that of the terminal it is, or plain text of 80 columns. env is os.Getenv.
func StyleOf(out *os.File, env func(string) string) Style {
	s := Style{Width: usualWidth, Unicode: utf8Locale(env)}
	fd := int(out.Fd())
	if !term.IsTerminal(fd) {
		return s
	}
	if w, _, err := term.GetSize(fd); err == nil && w > 0 {
		s.Width = w
	}
	// https://no-color.org: any value but the empty one.
	s.Color = env("NO_COLOR") == "" && env("TERM") != "dumb"
	return s
}

// utf8Locale reports whether the locale's character set is UTF-8; the first variable that is set decides (POSIX,
// locale(7)).
func utf8Locale(env func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(env(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}
