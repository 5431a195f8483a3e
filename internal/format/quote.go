package format

import (
	"strings"
	"unicode"
)

// Shell is a name of somebody else as one word of a command line: in single quotes unless it has letters, digits and
// _./:@%+=,- alone. A shell takes it as that name, whatever it holds; so does redis-cli.
func Shell(name string) string {
	if name != "" && strings.IndexFunc(name, func(r rune) bool {
		return r > unicode.MaxASCII ||
			!unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_./:@%+=,-", r)
	}) < 0 {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

// Name is a name of somebody else in a sentence of a fix. It is in quotes as Shell has them where it could end the
// sentence, and begin a command to copy.
func Name(name string) string {
	if strings.ContainsAny(name, "'`;|&<>$\\\"\n") || strings.Contains(name, ": ") || strings.Contains(name, " or ") {
		return Shell(name)
	}
	return name
}
