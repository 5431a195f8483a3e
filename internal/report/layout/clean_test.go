package layout

import (
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain text":                       "plain text",
		"a\x1b[31mred\x1b[0m":              "ared",
		"title\x1b]0;owned\x07!":           "title!",
		"title\x1b]0;owned\x1b\\!":         "title!",
		"8-bit \u009b2Jclear":              "8-bit clear",
		"query\x1bP$q\x1b\\.":              "query.",
		"split \x1b\x1b[31m[31mred":        "split [31mred",
		"open \x1b]0;never closed":         "open 0;never closed",
		"line\r\nbreak\ttab":               "line  break tab",
		"a\x00b\x07c\x7fd":                 "abcd",
		"reversed \u202egnp.exe\u2066":     "reversed gnp.exe",
		"invisible a\u200bb\u00adc\ufeffd": "invisible abcd",
		"bad \xff\xfe bytes":               "bad ? bytes",
		"größe 名前 µs":                      "größe 名前 µs",
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestTextOfStrangers: whatever a text holds, nothing of it drives a terminal, and it takes one line.
func TestTextOfStrangers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anyText.Draw(t, "text")
		style := Style{Unicode: rapid.Bool().Draw(t, "unicode")}
		for _, text := range []string{Clean(s), OneLine(s), New(style).Text(s), New(style).Whole(s)} {
			for _, r := range text {
				if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
					t.Fatalf("%U in %q", r, text)
				}
			}
		}
		for _, text := range []string{OneLine(s), New(style).Text(s)} {
			if strings.Contains(text, "  ") || len(text) > 3*MaxText {
				t.Fatalf("%d bytes: %q", len(text), text)
			}
		}
	})
}

// anyText has words, characters of two columns and of none, controls, and sequences that drive a terminal.
var anyText = rapid.Custom(func(t *rapid.T) string {
	part := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z0-9/.:-]{1,30}`), rapid.SampledFrom([]string{
		"", " ", "12 ms", "接続", "e\u0301", "👩\u200d🚀", "👍🏽", "🇩🇪", "각", "☎\ufe0f", "\u0301\u0301", "ก้",
		"\x1b[31m", "\x1b]0;t\x07", "\u009b2J", "\x1bP", "\u202e", "\r\n",
	}))
	return strings.Join(rapid.SliceOfN(part, 0, 8).Draw(t, "parts"), "")
})
