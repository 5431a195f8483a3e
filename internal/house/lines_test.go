package house

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	maxColumns = 120
	tabColumns = 4
)

var (
	lineKinds = []string{ // by extension or file name; files that begin with #! are scripts
		".go", ".c", ".h", ".js", ".mjs", ".css", ".html", ".py", ".java", ".awk", ".sql", ".md", "Makefile",
	}
	generatedGo = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	address     = regexp.MustCompile("https?://[^\\s\"'`<>)]+")
	rawString   = regexp.MustCompile("`[^`]*`")
)

// TestLinesAreShort fails on each line of a source file or a document that has more than 120 columns. Exceptions:
// testdata and generated files, rows of tables in Markdown, raw strings in tests (they are data), and the addresses of
// web pages, which cannot be broken.
func TestLinesAreShort(t *testing.T) {
	err := walkSources(func(path string, text []byte) {
		slashed := filepath.ToSlash(path)
		if slashed == "docs/causes.md" {
			return
		}
		for _, n := range longLines(path, text) {
			t.Errorf("%s:%d: more than %d columns", path, n, maxColumns)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// walkSources calls visit for each source file and document that somebody wrote.
func walkSources(visit func(path string, text []byte)) error {
	return filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == ".git" || d.Name() == "testdata" || path == "bin" || path == "dist" {
				return filepath.SkipDir
			}
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil && isSource(path, text) && !isGenerated(text) {
			visit(path, text)
		}
		return err
	})
}

func isSource(path string, text []byte) bool {
	return slices.Contains(lineKinds, filepath.Ext(path)) || slices.Contains(lineKinds, filepath.Base(path)) ||
		bytes.HasPrefix(text, []byte("#!"))
}

// isGenerated looks for the words first, since the expression takes a while in each file.
func isGenerated(text []byte) bool {
	return bytes.Contains(text, []byte("// Code generated ")) && generatedGo.Match(text)
}

// longLines gives the numbers of the lines that are too long.
func longLines(path string, text []byte) []int {
	var long []int
	raw := false // inside a raw string
	for i, line := range strings.Split(string(text), "\n") {
		data := raw
		if strings.Contains(line, "`") && strings.HasSuffix(path, "_test.go") {
			line = rawString.ReplaceAllString(line, "")
			if strings.Contains(line, "`") { // one begins or ends here
				data, raw = true, !raw
			}
		}
		switch {
		case data, strings.HasPrefix(line, "//go:generate "):
		case strings.HasSuffix(path, ".md") && strings.HasPrefix(strings.TrimSpace(line), "|"):
		case columns(line) > maxColumns && columns(address.ReplaceAllString(line, "")) > maxColumns:
			long = append(long, i+1)
		}
	}
	return long
}

func columns(line string) int {
	return utf8.RuneCountInString(line) + strings.Count(line, "\t")*(tabColumns-1)
}

// TestLongLines: what counts as too long, and what does not.
func TestLongLines(t *testing.T) {
	words := strings.Repeat("word ", 24) // 120 columns
	for name, c := range map[string]struct {
		path, line string
		long       bool
	}{
		"120 columns":                 {"a.go", words, false},
		"121 columns":                 {"a.go", words + "!", true},
		"a tab has 4":                 {"a.go", "\t" + words[:117], true},
		"characters, not bytes":       {"a.go", strings.Repeat("–", 120), false},
		"an address":                  {"a.go", words[:115] + "https://redis.io/docs/latest", false},
		"a table":                     {"a.md", "| " + words + "|", false},
		"prose":                       {"a.md", words + "!", true},
		"a table is one in documents": {"a.sh", "| " + words + "|", true},
		"a raw string of a test":      {"a_test.go", "`" + words + "`", false},
		"a raw string":                {"a.go", "`" + words + "`", true},
	} {
		if got := len(longLines(c.path, []byte(c.line))) == 1; got != c.long {
			t.Errorf("%s: long %v, want %v", name, got, c.long)
		}
	}
}
