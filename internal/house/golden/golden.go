// Package golden compares texts with files of testdata, and says whether they fit a terminal. go test -update writes
// the files anew.
package golden

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"slowpath/internal/report/layout"
)

var update = flag.Bool("update", false, "write the golden files")

// Check compares a text with a file.
func Check(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test -update writes it anew):\n%s", name, got)
	}
}

var control = regexp.MustCompile(`[\x00-\x09\x0b-\x1f\x7f\x{80}-\x{9f}\x{200b}\x{202e}]`)

// Fits wants lines of at most width columns, without anything that drives a terminal.
func Fits(out []byte, width int) error {
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSuffix(line, "\n")
		if layout.Width(line) > width || control.MatchString(line) {
			return fmt.Errorf("width %d: %q", width, line)
		}
	}
	return nil
}
