package layout

import (
	"regexp"
	"strings"
	"unicode"
)

// MaxText bounds a text that is wrapped, in bytes: a client may give itself a name of megabytes.
const MaxText = 4096

// escapes are the sequences that drive a terminal (ECMA-48): CSI with its parameters, the strings OSC, DCS, SOS, PM and
// APC up to their end, and ESC with one more byte. Each also in its 8-bit form.
var escapes = regexp.MustCompile("(?:\x1b\\[|\u009b)[0-?]*[ -/]*[@-~]" +
	"|(?:\x1b[\\]PX^_]|[\u009d\u0090\u0098\u009e\u009f])[^\x07\x1b\u009c]*(?:\x07|\x1b\\\\|\u009c)" +
	"|\x1b[ -/]*[0-~]")

// Clean makes a text safe to print: escape sequences, control characters and invisible characters (among them those
// that reverse the direction of writing) are taken out, line breaks and tabs become spaces.
func Clean(s string) string {
	s = strings.ToValidUTF8(s, "?")
	if strings.ContainsFunc(s, unicode.IsControl) { // each sequence begins so, and hardly a text has one
		s = escapes.ReplaceAllString(s, "")
	}
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), r == '\u2028', r == '\u2029':
			return ' '
		case !unicode.IsGraphic(r):
			return -1
		}
		return r
	}, s)
}

// plain are the characters that texts of this program use, in ASCII.
var plain = strings.NewReplacer("µ", "u", "…", "...", "×", "x", "≥", ">=", "≤", "<=", "≈", "~", "–", "-", "—", "-", "−",
	"-", "→", "->",
	"·", "|", "²", "^2", "±", "+-", "λ", "lambda", "σ", "sigma", "κ", "kappa", "“", `"`, "”", `"`, "‘", "'", "’", "'")

// ascii writes a clean text without characters beyond ASCII. Besides what such a terminal cannot show, the later bytes
// of a UTF-8 character can be control characters to it (0x9b is CSI).
func ascii(s string) string {
	return strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII {
			return '?'
		}
		return r
	}, plain.Replace(s))
}

// Text makes a text fit for this page: clean, bounded, in the page's characters.
func (p *Page) Text(s string) string {
	return strings.Join(strings.Fields(p.Whole(Bound(s, MaxText))), " ")
}

// Bound cuts a text to n bytes, and marks that.
func Bound(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// Whole is text for what must not be cut: commands and links.
func (p *Page) Whole(s string) string {
	s = strings.TrimSpace(Clean(s))
	if !p.Style.Unicode {
		s = ascii(s)
	}
	return s
}

// OneLine is a text that is safe to print and takes one line: for errors and live lines, which may hold what a server
// said.
func OneLine(s string) string { return strings.Join(strings.Fields(Clean(Bound(s, MaxText))), " ") }
