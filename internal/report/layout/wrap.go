package layout

import "strings"

// Wrap breaks a text at its spaces into lines of at most width columns. A number stays with its unit; a word that is
// longer than a line is broken.
func Wrap(s string, width int) []string { return wrap(s, width, true) }

// Fill is Wrap in one text, but leaves long words whole: they may be commands.
func Fill(s string, width int) string { return strings.Join(wrap(s, width, false), "\n") }

func wrap(s string, width int, breakWords bool) []string {
	var lines []string
	line := ""
	for _, word := range words(s) {
		if line != "" && Width(line)+1+Width(word) <= width {
			line += " " + word
			continue
		}
		if line != "" {
			lines = append(lines, line)
		}
		for breakWords && Width(word) > width {
			part, rest := head(word, width)
			if part == "" {
				break // not even one character fits
			}
			lines = append(lines, part)
			word = rest
		}
		line = word
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

var units = map[string]bool{"%": true, "s": true, "ms": true, "µs": true, "us": true, "ns": true}

// words are the parts of a text between which a line may break.
func words(s string) []string {
	var out []string
	for _, w := range strings.Fields(s) {
		if n := len(out) - 1; n >= 0 && endsInDigit(out[n]) && units[strings.TrimRight(w, ".,;:)")] {
			out[n] += " " + w
			continue
		}
		out = append(out, w)
	}
	return out
}

func endsInDigit(s string) bool {
	c := s[len(s)-1]
	return '0' <= c && c <= '9'
}
